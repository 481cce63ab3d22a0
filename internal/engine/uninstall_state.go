package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// errNoPlace is returned if uninstall cannot know where the operator keeps its own objects.
var errNoPlace = errors.New("no namespace is known for the operator's own ConfigMap, Lease and Secret, so it is not known whether the operator runs; " +
	"name the namespace with --state-namespace")

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

// checkPlace looks for the operator's own objects if their namespace is not known. It returns an error if there are any, since
// they may be those of another installation, and if it cannot know.
func (u *Uninstall) checkPlace(ctx context.Context) error {
	if u.Settings.Home != "" {
		return nil
	}
	lists := map[string]client.ObjectList{"Lease": &coordinationv1.LeaseList{}, "ConfigMap": &corev1.ConfigMapList{}}
	for kind, list := range lists {
		err := u.Live.List(ctx, list, client.MatchingFields{"metadata.name": u.Settings.Identity})
		if apierrors.IsForbidden(err) {
			return errNoPlace
		}
		if err != nil {
			return fmt.Errorf("look for the %s of the operator in all namespaces: %w", kind, err)
		}
	}
	found := map[string]bool{}
	leases, _ := lists["Lease"].(*coordinationv1.LeaseList)
	for _, one := range leases.Items {
		found[one.Namespace] = true
	}
	maps, _ := lists["ConfigMap"].(*corev1.ConfigMapList)
	for _, one := range maps.Items {
		found[one.Namespace] = true
	}
	for namespace := range found {
		return fmt.Errorf("the operator's own objects %s are in namespace %s: name it with --state-namespace %s", u.Settings.Identity, namespace, namespace)
	}
	u.Report(fmt.Sprintf("no namespace has a ConfigMap or Lease %s: the operator keeps nothing for itself", u.Settings.Identity))
	return nil
}

// checkStopped returns a *HeldError if the operator runs. A dry run reports that instead.
func (u *Uninstall) checkStopped(ctx context.Context) error {
	if u.Settings.Home == "" {
		return nil
	}
	place := types.NamespacedName{Namespace: u.Settings.Home, Name: u.Settings.Identity}
	read, err := kube.ReadHolding(ctx, u.Live, place)
	if err != nil {
		return fmt.Errorf("find out whether the operator runs: %w", err)
	}
	if read.Holder != "" && u.DryRun {
		u.Report(fmt.Sprintf("Lease %s: held by %s; uninstall refuses while the operator runs", place, read.Holder))
		return nil
	}
	if read.Holder != "" {
		u.Progress(fmt.Sprintf("Lease %s is held by %s: waiting until it is renewed, or expires", place, read.Holder))
	}
	if read, err = read.AwaitRenewal(ctx, u.Live); err != nil {
		return fmt.Errorf("find out whether the operator runs: %w", err)
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
		why = "since not all objects are stripped"
	case u.KeepState:
		why = "since they hold for other namespaces too"
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
		return true, fmt.Errorf("it has changed, so the operator was started meanwhile; stop it and run uninstall again: %w", err)
	case err != nil:
		return true, fmt.Errorf("delete it: %w", err)
	}
	return true, nil
}
