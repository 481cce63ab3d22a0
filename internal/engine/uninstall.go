package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Of an object that others change at the same time the strip is tried so often; so many are stripped at the same time.
const (
	stripTries = 5
	strippers  = 8
)

// Uninstall removes from the cluster what an operator has left in it, except what its handlers did.
type Uninstall struct {
	Settings Settings
	Kinds    []Kind
	// Selections choose further kinds, as they are served now.
	Selections []Selection
	Live       client.Client
	Discovery  discovery.DiscoveryInterface
	// DryRun changes nothing.
	DryRun bool
	// KeepState leaves the operator's own objects, which hold for namespaces that are not served as well.
	KeepState bool
	// Report is called with a line for each object, Progress with what is waited for.
	Report, Progress func(line string)

	reported map[types.UID]bool
	sum      Uninstalled
	lease    kube.Holding
}

// Uninstalled counts what was done, or would be.
type Uninstalled struct {
	// Stripped objects had marks; of these Held are being deleted, and their delete handlers do not run. Failed ones still
	// have marks.
	Stripped, Held, Failed int
	// Unlisted kinds could not be listed. State objects are the operator's own that could not be deleted.
	Unlisted, State int
}

// Complete reports whether nothing is left that should have been removed.
func (u Uninstalled) Complete() bool { return u.Failed+u.Unlisted+u.State == 0 }

// HeldError reports that a process holds the operator's Lease, so that the operator runs.
type HeldError struct {
	Lease  types.NamespacedName
	Holder string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("the operator is running: Lease %s is held by %s; stop all its replicas, then run uninstall again; nothing was changed",
		e.Lease, e.Holder)
}

// Run strips all objects of all kinds, and deletes the operator's own. If something fails it goes on with the rest, except
// that the operator's own objects stay. It returns an error, and has changed nothing, if it cannot begin: a *HeldError if the
// operator runs.
func (u *Uninstall) Run(ctx context.Context) (Uninstalled, error) {
	u.reported, u.sum = map[types.UID]bool{}, Uninstalled{}
	if err := u.checkPlace(ctx); err != nil {
		return u.sum, err
	}
	if err := u.checkStopped(ctx); err != nil {
		return u.sum, err
	}
	if err := u.choose(ctx); err != nil {
		return u.sum, err
	}
	for _, kind := range u.Kinds {
		if err := u.kind(ctx, kind); err != nil {
			u.sum.Unlisted++
			u.Report(fmt.Sprintf("%s: failed: %v", kind.GVK.Kind, err))
		}
	}
	u.verify(ctx)
	u.state(ctx)
	return u.sum, nil
}

// choose adds the kinds that selections choose.
func (u *Uninstall) choose(ctx context.Context) error {
	if len(u.Selections) == 0 {
		return nil
	}
	chosen, trouble, err := Chosen(ctx, &kube.Catalogue{Discovery: u.Discovery}, u.Selections, u.Settings, u.Kinds)
	if err != nil {
		return err
	}
	for _, text := range trouble {
		u.Report(text)
	}
	u.Kinds, u.Selections = append(u.Kinds, chosen...), nil
	return nil
}

func (u *Uninstall) kind(ctx context.Context, kind Kind) error {
	found, err := kube.Describe(ctx, u.Discovery, kind.GVK)
	if errors.Is(err, kube.ErrNotServed) {
		u.Report(kind.GVK.Kind + ": not served, nothing to remove")
		return nil
	}
	if err != nil {
		return err
	}
	objects := kube.Objects{Client: u.Live, Kind: kind.GVK, Owner: u.Settings.Identity}
	scopes, err := u.scopes(ctx, found.Namespaced)
	if err != nil {
		return err
	}
	for _, namespace := range scopes {
		err := objects.Pages(ctx, namespace, func(page []object.Body) error {
			u.page(ctx, stripper{Uninstall: u, objects: objects, subresource: found.HasStatus}, page)
			return context.Cause(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scopes are the namespaces to look into; "" is all of them, or none for objects that are in none.
func (u *Uninstall) scopes(ctx context.Context, namespaced bool) ([]string, error) {
	served := u.Settings.Namespaces
	switch {
	case !namespaced || served.All():
		return []string{""}, nil
	case served.Fixed():
		return served.Names(), nil
	}
	there, err := kube.ListNamespaces(ctx, u.Live)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(there, func(name string) bool { return !served.Match(name) }), nil
}

// page strips the objects of one page, several at a time, and reports them in their order.
func (u *Uninstall) page(ctx context.Context, by stripper, page []object.Body) {
	results, slots := make([]result, len(page)), make(chan struct{}, strippers)
	var running sync.WaitGroup
	for i, body := range page {
		slots <- struct{}{}
		running.Go(func() {
			results[i] = by.strip(ctx, body)
			<-slots
		})
	}
	running.Wait()
	for i, body := range page {
		if uid := types.UID(object.Text(body, "metadata", "uid")); !u.reported[uid] {
			u.reported[uid] = u.reportObject(by.objects.Kind.Kind+" "+by.key(body).String(), results[i])
		}
	}
}

// reportObject reports what became of an object. It returns false if there was nothing to do.
func (u *Uninstall) reportObject(name string, r result) bool {
	switch {
	case r.err != nil:
		u.sum.Failed++
		u.Report(name + ": failed: " + r.err.Error())
		return true
	case len(r.found) == 0:
		return false
	}
	u.sum.Stripped++
	line := name + ": " + u.removed() + " " + strings.Join(r.found, ", ")
	if r.held {
		u.sum.Held++
		line += "; it is being deleted, its delete handlers do not run"
		if r.last {
			line += ", removing the finalizer deletes it"
		}
	}
	u.Report(line)
	return true
}

func (u *Uninstall) removed() string {
	if u.DryRun {
		return "would remove"
	}
	return "removed"
}

// stripper strips objects of one kind.
type stripper struct {
	*Uninstall

	objects     kube.Objects
	subresource bool
}

// result is what became of one object.
type result struct {
	found      []string
	held, last bool
	err        error
}

func (s stripper) key(body object.Body) types.NamespacedName {
	return types.NamespacedName{Namespace: object.Text(body, "metadata", "namespace"), Name: object.Text(body, "metadata", "name")}
}

// strip takes the marks out of one object. Another object that has its name meanwhile is left alone.
func (s stripper) strip(ctx context.Context, body object.Body) result {
	left := s.leftovers(body)
	done := result{found: left.Found, held: left.Held, last: left.Last}
	if s.DryRun {
		return done
	}
	uid := object.Text(body, "metadata", "uid")
	for range stripTries {
		if done.err = s.send(ctx, body, left); !errors.Is(done.err, kube.ErrConflict) {
			break
		}
		newest, err := s.objects.Get(ctx, s.key(body))
		if err == nil && object.Text(newest, "metadata", "uid") != uid {
			err = kube.ErrGone
		}
		if done.err = err; err != nil {
			break
		}
		body, left = newest, s.leftovers(newest)
		done.err = fmt.Errorf("conflicts in all attempts, is the operator still running? %w", kube.ErrConflict)
	}
	if errors.Is(done.err, kube.ErrGone) {
		done.err = nil
	}
	return done
}

func (s stripper) leftovers(body object.Body) patch.Leftovers {
	return patch.Strip(body, patch.Marks{
		Identity: s.Settings.Identity, Finalizer: s.Settings.Finalizer(), Conditions: []string{lostCondition, blockedCondition, undecidedCondition},
	}, s.subresource)
}

func (s stripper) send(ctx context.Context, body object.Body, left patch.Leftovers) error {
	if !left.Status.Empty() {
		if _, err := s.objects.Patch(ctx, s.key(body), statusResource, left.Status.Operations()); err != nil {
			return err
		}
	}
	if left.Main.Empty() {
		return nil
	}
	_, err := s.objects.Patch(ctx, s.key(body), "", left.Main.Operations())
	return err
}
