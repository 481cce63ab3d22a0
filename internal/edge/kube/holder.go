package kube

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewalPoll is how often a Lease is read while its renewal is awaited. renewalLimit is the longest time to wait.
const (
	renewalPoll  = 250 * time.Millisecond
	renewalLimit = time.Minute
)

// Holding is a Lease as it was last read.
type Holding struct {
	// Lease is the Lease, or nil if there is none.
	Lease *coordinationv1.Lease
	// Holder names the process that holds the Lease, or is "".
	Holder string
}

// ReadHolding reads a Lease.
func ReadHolding(ctx context.Context, api client.Reader, place types.NamespacedName) (Holding, error) {
	lease := &coordinationv1.Lease{}
	err := api.Get(ctx, place, lease)
	if apierrors.IsNotFound(err) {
		return Holding{}, nil
	}
	if err != nil {
		return Holding{}, fmt.Errorf("read Lease %s: %w", place, err)
	}
	read := Holding{Lease: lease}
	if lease.Spec.HolderIdentity != nil {
		read.Holder = *lease.Spec.HolderIdentity
	}
	return read, nil
}

// AwaitRenewal waits until the holder renews the Lease or the Lease expires, and returns the last state that it read. The result has no
// holder if the Lease has expired. AwaitRenewal does not compare clocks, since the holder's clock may be wrong.
func (h Holding) AwaitRenewal(ctx context.Context, api client.Reader) (Holding, error) {
	if h.Holder == "" {
		return h, nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.lasts()+renewalLimit) // Longer than the requests below take.
	defer cancel()
	expired := time.NewTimer(h.lasts())
	defer expired.Stop()
	ticker := time.NewTicker(renewalPoll)
	defer ticker.Stop()
	for {
		over := false
		select {
		case <-ctx.Done():
			return h, context.Cause(ctx)
		case <-expired.C:
			over = true
		case <-ticker.C:
		}
		now, err := ReadHolding(ctx, api, client.ObjectKeyFromObject(h.Lease))
		switch {
		case err != nil || now.Holder == "" || now.Lease.ResourceVersion != h.Lease.ResourceVersion:
			return now, err
		case over:
			now.Holder = ""
			return now, nil
		}
	}
}

// lasts returns how long the Lease is held without a renewal.
func (h Holding) lasts() time.Duration {
	if seconds := h.Lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		return min(time.Duration(*seconds)*time.Second, renewalLimit)
	}
	return NewPace(1).Lasts
}

// HeldElsewhere lists the Leases with the same name in other namespaces that a process seems to hold: they were renewed in the last
// minute, according to the clocks of both machines.
func HeldElsewhere(ctx context.Context, api client.Reader, place types.NamespacedName) ([]Holding, error) {
	list := &coordinationv1.LeaseList{}
	if err := api.List(ctx, list, client.MatchingFields{"metadata.name": place.Name}); err != nil {
		return nil, fmt.Errorf("list Leases named %s: %w", place.Name, err)
	}
	var held []Holding
	for _, lease := range list.Items {
		holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
		if lease.Namespace != place.Namespace && holder != nil && *holder != "" && renewed != nil && time.Since(renewed.Time) < renewalLimit {
			held = append(held, Holding{Lease: &lease, Holder: *holder})
		}
	}
	return held, nil
}
