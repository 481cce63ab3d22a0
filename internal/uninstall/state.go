package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// HeldError reports that a process holds the operator's Lease, so that the operator runs.
type HeldError struct {
	Lease  types.NamespacedName
	Holder string
}

// Error names the Lease, its holder and the remedy.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the operator is running: Lease %s is held by %s; stop all its replicas, then run uninstall again; nothing was changed",
		e.Lease, e.Holder)
}

// findState finds the operator's own objects, which have its identity as name: the Leases first.
func (u *Uninstaller) findState(ctx context.Context) error {
	secret := slices.ContainsFunc(u.Kinds, declaration.Kind.Secret) && u.Settings.Home != ""
	err := u.findEverywhere(ctx, kube.LeaseKind())
	if err == nil {
		err = u.findEverywhere(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	}
	if err == nil && secret {
		err = u.find(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), u.Settings.Home)
	}
	if err != nil {
		return fmt.Errorf("check whether the operator is running: %w", err)
	}
	return nil
}

func (u *Uninstaller) find(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	found, err := kube.ListNamed(ctx, u.Live, kind, types.NamespacedName{Namespace: namespace, Name: u.Settings.Identity})
	u.own = append(u.own, found...)
	return err
}

// findEverywhere finds the operator's own objects of a kind in all namespaces. If the account may not list them, it looks into the state
// namespace and into the namespaces that are served by name.
func (u *Uninstaller) findEverywhere(ctx context.Context, kind schema.GroupVersionKind) error {
	refused := u.find(ctx, kind, metav1.NamespaceAll)
	if !apierrors.IsForbidden(refused) {
		return refused
	}
	if u.Settings.Home == "" {
		return errors.New("the namespace of its ConfigMap, Lease and Secret is unknown; set --state-namespace")
	}
	u.unsearched = cmp.Or(u.unsearched, refused)
	var searched []string
	for _, namespace := range append([]string{u.Settings.Home}, u.Settings.Namespaces.Names()...) {
		if slices.Contains(searched, namespace) {
			continue
		}
		err := u.find(ctx, kind, namespace)
		if err == nil {
			searched = append(searched, namespace)
		} else if namespace == u.Settings.Home || !apierrors.IsForbidden(err) {
			return err
		}
	}
	u.Report(fmt.Sprintf("%s: only these namespaces were searched, since the account may not list all: %s", kind.Kind, strings.Join(searched, ", ")))
	return nil
}

// checkStopped returns a *HeldError if a process holds one of the Leases, which a dry run reports instead. It also returns an error if only
// other namespaces than the state namespace have objects of the operator's own.
func (u *Uninstaller) checkStopped(ctx context.Context) error {
	home := false
	for i := range u.own {
		one := &u.own[i]
		home = home || one.Namespace == u.Settings.Home
		if one.GroupVersionKind() != kube.LeaseKind() {
			continue
		}
		key := client.ObjectKeyFromObject(one)
		holder, now, err := kube.AwaitHolder(ctx, u.Live, key, func(holder string) {
			u.Progress(fmt.Sprintf("Lease %s is held by %s: waiting until it is renewed, or expires", key, holder))
		})
		switch {
		case err != nil:
			return fmt.Errorf("check whether the operator is running: %w", err)
		case holder != "" && u.DryRun:
			u.Report(fmt.Sprintf("Lease %s: held by %s; uninstall refuses while the operator is running", key, holder))
		case holder != "":
			return &HeldError{Lease: key, Holder: holder}
		}
		one.ResourceVersion = now.ResourceVersion
	}
	switch {
	case len(u.own) == 0 && u.unsearched != nil:
		return fmt.Errorf("check whether the operator is running: namespace %s has neither a Lease nor a ConfigMap %s, and the account may not "+
			"list other namespaces; set --state-namespace to the right namespace: %w", u.Settings.Home, u.Settings.Identity, u.unsearched)
	case len(u.own) == 0:
		u.Report(fmt.Sprintf("no namespace has a Lease or ConfigMap %s", u.Settings.Identity))
	case !home:
		return fmt.Errorf("the operator's own objects %s are in namespace %s; set --state-namespace %[2]s; nothing was changed",
			u.Settings.Identity, u.own[0].Namespace)
	}
	return nil
}

// deleteState deletes the operator's own objects, or reports why they stay. It deletes them only as they were read: if one has changed, the
// operator runs.
func (u *Uninstaller) deleteState(ctx context.Context) {
	kept := ""
	switch {
	case u.sum.Failed > 0:
		kept = "some objects were not cleaned up"
	case u.KeepState:
		kept = "it is also used for other namespaces"
	}
	for _, one := range u.own {
		name, home := one.Kind+" "+client.ObjectKeyFromObject(&one).String(), one.Namespace == u.Settings.Home
		switch {
		case kept != "":
			u.Report(name + ": kept, because " + kept)
		case u.DryRun && home:
			u.Report(name + ": would be removed")
		case u.DryRun:
			u.Report(name + ": would be kept, because it is not in the state namespace")
		case !home:
			u.fail(name, fmt.Errorf("it is not in the state namespace; run uninstall again with --state-namespace %s", one.Namespace))
		default:
			err := u.Live.Delete(ctx, &one, client.Preconditions{UID: &one.UID, ResourceVersion: &one.ResourceVersion})
			if apierrors.IsConflict(err) {
				kept = "the operator was started again"
				err = fmt.Errorf("it has changed, so %s; stop it, then run uninstall again: %w", kept, err)
			}
			if client.IgnoreNotFound(err) != nil {
				u.fail(name, err)
			} else {
				u.Report(name + ": removed")
			}
		}
	}
}
