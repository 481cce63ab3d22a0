package kube

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewalPoll is how often a Lease is read while its renewal is awaited.
const renewalPoll = 250 * time.Millisecond

// LeaseKind is the kind of a Lease.
func LeaseKind() schema.GroupVersionKind { return coordinationv1.SchemeGroupVersion.WithKind("Lease") }

// ListNamed lists the metadata of the objects of a kind that have a name, in a namespace, or in all namespaces if it is "".
func ListNamed(
	ctx context.Context, api client.Reader, kind schema.GroupVersionKind, place types.NamespacedName,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := api.List(ctx, list, client.InNamespace(place.Namespace), client.MatchingFields{"metadata.name": place.Name}); err != nil {
		return nil, fmt.Errorf("list %s named %s: %w", kind.Kind, place.Name, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}

// AwaitHolder returns the process that holds a Lease, or "" if the Lease is free. A Lease is held if it names a holder, and is renewed before
// its duration has passed. So AwaitHolder waits until one of the two happens; before that, it calls waiting with the holder's name. It does
// not compare clocks, since the holder's clock may be wrong. Leadership takes and keeps a Lease by the same rule, that of client-go's leader
// election.
//
// AwaitHolder also returns the Lease as it was last read. It is empty if there is none.
func AwaitHolder(
	ctx context.Context, api client.Reader, place types.NamespacedName, waiting func(holder string),
) (string, *coordinationv1.Lease, error) {
	first, err := readLease(ctx, api, place)
	if err != nil || holderOf(first) == "" {
		return "", first, err
	}
	waiting(holderOf(first))
	now, renewed, expires := first, false, time.Now().Add(lasts(first))
	err = wait.PollUntilContextCancel(ctx, renewalPoll, false, func(ctx context.Context) (over bool, err error) {
		over = !time.Now().Before(expires) // before the read, so that the last read is after the Lease has expired
		if now, err = readLease(ctx, api, place); err != nil {
			return false, err
		}
		renewed = !equality.Semantic.DeepEqual(now.Spec, first.Spec)
		return renewed || over, nil
	})
	switch {
	case ctx.Err() != nil:
		return "", first, context.Cause(ctx)
	case err != nil:
		return "", nil, err
	case renewed:
		return holderOf(now), now, nil
	}
	return "", now, nil
}

// readLease reads a Lease. It returns an empty one if there is none.
func readLease(ctx context.Context, api client.Reader, place types.NamespacedName) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := client.IgnoreNotFound(api.Get(ctx, place, lease)); err != nil {
		return nil, fmt.Errorf("read Lease %s: %w", place, err)
	}
	return lease, nil
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// lasts returns how long a Lease is held without a renewal.
func lasts(lease *coordinationv1.Lease) time.Duration {
	if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return NewLeaseTiming(1).Lasts
}
