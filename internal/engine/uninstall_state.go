package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// errNoPlace is returned if uninstall cannot know where the operator keeps its own objects.
var errNoPlace = errors.New("check whether the operator is running: the namespace of its ConfigMap, Lease and Secret is unknown; " +
	"set --state-namespace")

// returnTime is how long a running operator may take to write its marks again.
const returnTime = 2 * time.Second

// own is one of the operator's own objects.
type own struct {
	kind   string
	object client.Object
}

// own lists the objects that the operator keeps for itself, the Lease first: while it is unchanged, the operator does not run.
func (u *Uninstall) own() []own {
	meta := metav1.ObjectMeta{Namespace: u.Settings.Home, Name: u.Settings.Identity}
	all := []own{
		{"Lease", &coordinationv1.Lease{ObjectMeta: meta}},
		{"ConfigMap", &corev1.ConfigMap{ObjectMeta: meta}},
	}
	for _, kind := range u.Kinds {
		if kind.Secret() {
			return append(all, own{"Secret", &corev1.Secret{ObjectMeta: meta}})
		}
	}
	return all
}

// checkPlace returns an error if the operator's own objects are not where they are looked for: then they are in another namespace, and
// the operator may run there. It also returns an error if it cannot know.
func (u *Uninstall) checkPlace(ctx context.Context) error {
	if found, err := u.isPlace(ctx); found || err != nil {
		return err
	}
	leases, maps := &coordinationv1.LeaseList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{leases, maps} {
		err := u.Live.List(ctx, list, client.MatchingFields{"metadata.name": u.Settings.Identity})
		switch {
		case apierrors.IsForbidden(err) && u.Settings.Home == "":
			return errNoPlace
		case apierrors.IsForbidden(err):
			return fmt.Errorf("check whether the operator is running: namespace %s has neither a Lease nor a ConfigMap %s, and the account may not "+
				"list other namespaces; set --state-namespace to the right namespace: %w", u.Settings.Home, u.Settings.Identity, err)
		case err != nil:
			return fmt.Errorf("list the operator's own objects in all namespaces: %w", err)
		}
	}
	var found []string
	for _, lease := range leases.Items {
		found = append(found, lease.Namespace)
	}
	for _, one := range maps.Items {
		found = append(found, one.Namespace)
	}
	if len(found) > 0 {
		return fmt.Errorf("the operator's own objects %s are in namespace %s; set --state-namespace %s; nothing was changed",
			u.Settings.Identity, found[0], found[0])
	}
	u.Report(fmt.Sprintf("no namespace has a Lease or ConfigMap %s", u.Settings.Identity))
	return nil
}

// isPlace reports whether the namespace of the operator's own objects is known and has one.
func (u *Uninstall) isPlace(ctx context.Context) (bool, error) {
	if u.Settings.Home == "" {
		return false, nil
	}
	place := types.NamespacedName{Namespace: u.Settings.Home, Name: u.Settings.Identity}
	read, err := kube.ReadHolding(ctx, u.Live, place)
	if err != nil {
		return false, fmt.Errorf("check whether the operator is running: %w", err)
	}
	if read.Lease != nil {
		return true, nil
	}
	err = u.Live.Get(ctx, place, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", place, err)
	}
	return true, nil
}

// verify looks for marks that have come back, if no Lease has shown that the operator does not run.
func (u *Uninstall) verify(ctx context.Context) {
	if u.DryRun || u.sum.Stripped == 0 || u.lease.Lease != nil {
		return
	}
	select {
	case <-time.After(returnTime):
	case <-ctx.Done():
		return
	}
	again := *u
	again.DryRun, again.reported, again.sum = true, map[types.UID]bool{}, Uninstalled{}
	again.Report = func(line string) {
		u.Report(strings.Replace(line, "would remove", "failed: the operator is still running and has written again:", 1))
	}
	for _, kind := range u.Kinds {
		if err := again.kind(ctx, kind); err != nil {
			u.sum.Unlisted++
			u.Report(fmt.Sprintf("%s: failed: %v", kind.GVK.Kind, err))
		}
	}
	u.sum.Failed += again.sum.Stripped
}

// checkStopped returns a *HeldError if the operator runs. A dry run reports that instead.
func (u *Uninstall) checkStopped(ctx context.Context) error {
	if u.Settings.Home == "" {
		return nil
	}
	place := types.NamespacedName{Namespace: u.Settings.Home, Name: u.Settings.Identity}
	read, err := kube.ReadHolding(ctx, u.Live, place)
	if err != nil {
		return fmt.Errorf("check whether the operator is running: %w", err)
	}
	if read.Holder != "" && u.DryRun {
		u.Report(fmt.Sprintf("Lease %s: held by %s; uninstall refuses while the operator is running", place, read.Holder))
		return nil
	}
	if read.Holder != "" {
		u.Progress(fmt.Sprintf("Lease %s is held by %s: waiting until it is renewed, or expires", place, read.Holder))
	}
	if read, err = read.AwaitRenewal(ctx, u.Live); err != nil {
		return fmt.Errorf("check whether the operator is running: %w", err)
	}
	if read.Holder != "" {
		return &HeldError{Lease: place, Holder: read.Holder}
	}
	u.lease = read
	return nil
}

// state deletes what the operator keeps for itself, or reports why it stays.
func (u *Uninstall) state(ctx context.Context) {
	if u.Settings.Home == "" {
		return
	}
	all, place := u.own(), types.NamespacedName{Namespace: u.Settings.Home, Name: u.Settings.Identity}
	why := ""
	switch {
	case !u.sum.Complete():
		why = "because some objects were not cleaned up"
	case u.KeepState:
		why = "because they are also used for other namespaces"
	}
	if why != "" {
		var kinds []string
		for _, one := range all {
			kinds = append(kinds, one.kind)
		}
		u.Report(fmt.Sprintf("%s %s: kept, %s", strings.Join(kinds, ", "), place, why))
		return
	}
	for _, one := range all {
		found, err := u.delete(ctx, one)
		if err != nil {
			u.sum.State++
			u.Report(fmt.Sprintf("%s %s: failed: %v", one.kind, place, err))
		} else if found {
			u.Report(fmt.Sprintf("%s %s: %s", one.kind, place, map[bool]string{false: "removed", true: "would be removed"}[u.DryRun]))
		}
		if one.kind == "Lease" && apierrors.IsConflict(err) {
			return // The operator runs again: what it keeps is in use.
		}
	}
}

// delete deletes one of the operator's own objects; the Lease only as it was when the operator did not run.
func (u *Uninstall) delete(ctx context.Context, one own) (found bool, err error) {
	if one.kind != "Lease" {
		return kube.Drop(ctx, u.Live, one.object, u.DryRun)
	}
	lease := u.lease.Lease
	if u.DryRun || lease == nil {
		return kube.Drop(ctx, u.Live, one.object, u.DryRun)
	}
	err = u.Live.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return true, fmt.Errorf("it has changed, so the operator was started again; stop it and run uninstall again: %w", err)
	case err != nil:
		return true, fmt.Errorf("delete it: %w", err)
	}
	return true, nil
}
