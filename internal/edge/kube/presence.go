package kube

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// Show holds the Lease in the background until release is called, for a replica that runs without leader election, so that uninstall sees
// it. It never takes the Lease from a live holder, and never blocks the replica. It continues after the context ends, since handlers may
// still run.
func (l *Leadership) Show(ctx context.Context) (release func(), err error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: l.Timing.Lasts, RenewDeadline: l.Timing.Deadline, RetryPeriod: l.Timing.Retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, fmt.Errorf("hold the Lease: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ctx = klog.NewContext(ctx, logr.Discard()) // Failed logs what matters.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait.UntilWithContext(ctx, elector.Run, l.Timing.Retry)
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}
