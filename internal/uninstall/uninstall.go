// Package uninstall removes from a cluster what an operator has left in it.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/report"
)

const (
	// stripTries is how often Uninstaller tries to strip an object that others change at the same time.
	stripTries = 5
	// returnTime is how long a running operator may take to write its marks again.
	returnTime = 2 * time.Second
)

// Uninstaller removes from the cluster what an operator has left in it, except what its handlers did.
type Uninstaller struct {
	// Settings and Kinds are those of the operator.
	Settings declaration.Settings
	Kinds    []declaration.Kind
	// Selections choose further kinds, as they are served now.
	Selections []declaration.Selection
	// Live sends each request to the API server. Discovery says which kinds it serves.
	Live      client.Client
	Discovery discovery.DiscoveryInterface
	// DryRun changes nothing. KeepState keeps the operator's own objects, since other namespaces need them too.
	DryRun, KeepState bool
	// Report is called with a line for each object, Progress with what is waited for.
	Report, Progress func(line string)

	// own are the operator's own objects that were found.
	own []metav1.PartialObjectMetadata
	// unsearched is why they were not searched for in all namespaces, or nil.
	unsearched error
	// failed has the UIDs of the objects that were reported; true means that the object still has marks.
	failed map[string]bool
	sum    Result
}

// Result counts what was done, or would be.
type Result struct {
	// Stripped objects had marks. Held ones are being deleted, and their delete handlers do not run.
	Stripped, Held int
	// Failed counts objects that still have marks, kinds that could not be listed, and objects of the operator's own that are left.
	Failed int
}

// Run strips all objects of all kinds, and deletes the operator's own. If something fails it goes on with the rest, except
// that the operator's own objects stay. It returns an error, and has changed nothing, if it cannot begin: a *HeldError if the
// operator runs.
func (u *Uninstaller) Run(ctx context.Context) (Result, error) {
	u.failed = map[string]bool{}
	for _, prepare := range []func(context.Context) error{u.choose, u.findState, u.checkStopped} {
		if err := prepare(ctx); err != nil {
			return u.sum, err
		}
	}
	listed := slices.DeleteFunc(slices.Clone(u.Kinds), func(kind declaration.Kind) bool { return !u.each(ctx, kind, u.strip) })
	if !u.DryRun {
		u.verify(ctx, listed)
	}
	u.deleteState(ctx)
	return u.sum, nil
}

func (u *Uninstaller) fail(what string, err error) {
	u.sum.Failed++
	u.Report(what + ": failed: " + err.Error())
}

// choose adds the kinds that selections choose.
func (u *Uninstaller) choose(ctx context.Context) error {
	if len(u.Selections) == 0 {
		return nil
	}
	served, _, err := (&kube.DiscoveryCache{Discovery: u.Discovery}).Read(ctx)
	if err != nil {
		return err
	}
	chosen, trouble := declaration.Chosen(u.Selections, u.Settings, served, u.Kinds)
	for _, text := range trouble {
		u.Report(text)
	}
	u.Kinds = append(u.Kinds, chosen...)
	return nil
}

// each calls use for the objects of a kind that have marks. It returns false if the kind is not served or could not be listed.
func (u *Uninstaller) each(ctx context.Context, kind declaration.Kind, use func(context.Context, marked)) bool {
	described, err := kube.Describe(ctx, u.Discovery, kind.GVK)
	if errors.Is(err, kube.ErrNotServed) {
		u.Report(kind.GVK.Kind + ": not served, nothing to remove")
		return false
	}
	var namespaces []string
	if err == nil {
		namespaces, err = u.scopes(ctx, described.Namespaced)
	}
	one := marked{objects: kube.Objects{Client: u.Live, Kind: kind.GVK, Owner: u.Settings.Identity}, subresource: described.HasStatus, marks: patch.Marks{
		Identity: u.Settings.Identity, Finalizer: u.Settings.Finalizer(), Conditions: report.ConditionTypes(),
	}}
	for i := 0; err == nil && i < len(namespaces); i++ {
		err = one.objects.Pages(ctx, namespaces[i], func(page []object.Body) error {
			for _, body := range page {
				if found := one.of(body); len(found.left.Found) > 0 {
					use(ctx, found)
				}
			}
			return context.Cause(ctx)
		})
	}
	if err != nil {
		u.fail(kind.GVK.Kind, err)
	}
	return err == nil
}

// scopes returns the namespaces to look into. "" is all of them, or none for objects that are in none.
func (u *Uninstaller) scopes(ctx context.Context, namespaced bool) ([]string, error) {
	served := u.Settings.Namespaces
	switch {
	case !namespaced || served.All():
		return []string{""}, nil
	case served.Fixed():
		return served.Names(), nil
	}
	there, err := kube.ListNamespaces(ctx, u.Live)
	return slices.DeleteFunc(there, func(name string) bool { return !served.Match(name) }), err
}

// strip takes the marks out of one object, and reports that.
func (u *Uninstaller) strip(ctx context.Context, one marked) {
	if _, again := u.failed[one.uid()]; again { // A list that has expired starts again.
		return
	}
	done := "would remove "
	if !u.DryRun {
		err := one.strip(ctx)
		failed := err != nil && !errors.Is(err, kube.ErrGone)
		if u.failed[one.uid()] = failed; failed {
			u.fail(one.String(), err)
			return
		}
		done = "removed "
	}
	done += strings.Join(one.left.Found, ", ")
	if one.left.Held {
		u.sum.Held++
		done += "; it is being deleted, its delete handlers do not run"
	}
	if one.left.Last {
		done += ", removing the finalizer deletes it"
	}
	u.sum.Stripped++
	u.Report(one.String() + ": " + done)
}

// verify lists all objects once more. Marks that are there again mean that an operator runs whose Lease was not found.
func (u *Uninstaller) verify(ctx context.Context, listed []declaration.Kind) {
	if u.sum.Stripped > 0 {
		select {
		case <-time.After(returnTime):
		case <-ctx.Done():
		}
	}
	for _, kind := range listed {
		u.each(ctx, kind, func(_ context.Context, one marked) {
			if !u.failed[one.uid()] {
				u.failed[one.uid()] = true
				u.fail(one.String(), errors.New("the operator is still running and has written again: "+strings.Join(one.left.Found, ", ")))
			}
		})
	}
}

// marked is an object with marks of the operator.
type marked struct {
	objects kube.Objects
	marks   patch.Marks
	// subresource means that the status is a subresource.
	subresource bool

	body object.Body
	left patch.Leftovers
}

// of returns the object with this body.
func (m marked) of(body object.Body) marked {
	m.body, m.left = body, patch.Strip(body, m.marks, m.subresource)
	return m
}

func (m marked) uid() string { return object.Text(m.body, "metadata", "uid") }

func (m marked) key() types.NamespacedName {
	return types.NamespacedName{Namespace: object.Text(m.body, "metadata", "namespace"), Name: object.Text(m.body, "metadata", "name")}
}

func (m marked) String() string { return m.objects.Kind.Kind + " " + m.key().String() }

// strip takes the marks out of the object, or out of another one that has its name meanwhile. The error can be kube.ErrGone.
func (m marked) strip(ctx context.Context) (err error) {
	for range stripTries {
		if err = m.patch(ctx); !errors.Is(err, kube.ErrConflict) {
			return err
		}
		body, errRead := m.objects.Get(ctx, m.key())
		if errRead != nil {
			return errRead
		}
		m = m.of(body)
	}
	return fmt.Errorf("rejected in %d attempts; stop the operator if it runs, and repair the object if it is invalid: %w", stripTries, err)
}

// patch sends one request for the status subresource and one for the object, if they have marks.
func (m marked) patch(ctx context.Context) error {
	for _, part := range []struct {
		subresource string
		document    *patch.Document
	}{{"status", m.left.Status}, {"", m.left.Main}} {
		if part.document.Empty() {
			continue
		}
		if _, err := m.objects.Patch(ctx, m.key(), part.subresource, part.document.Operations()); err != nil {
			return err
		}
	}
	return nil
}
