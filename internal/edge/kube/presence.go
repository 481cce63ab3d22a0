package kube

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Presence holds the Lease of an operator while a replica runs without leader election, and reports other replicas. It never takes the
// Lease from a live holder, and never blocks the replica.
type Presence struct {
	lock resourcelock.Interface
	pace Pace
	log  *slog.Logger
	// problems logs why requests to the API server fail.
	problems *ProblemLog

	// other is the last holder that was seen, raw its record, and changed the time at which the record was last seen to change.
	other   string
	raw     []byte
	changed time.Time
	// warned is when the other replica was last reported, or zero.
	warned time.Time
	// unreadable means that it was reported that the Lease cannot be used.
	unreadable bool
}

// NewPresence returns the presence of a process at the place of the operator's Lease.
func NewPresence(config *rest.Config, place types.NamespacedName, pace Pace, log *slog.Logger, problems *ProblemLog) (*Presence, error) {
	lease, err := NewLeadership(config, place, pace)
	if err != nil {
		return nil, err
	}
	return &Presence{lock: lease.Interface, pace: pace, log: log.With("lease", place.String()), problems: problems}, nil
}

// Keep holds the Lease in the background until release is called. It continues after the context ends, since handlers may still run.
func (p *Presence) Keep(ctx context.Context) (release func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(p.pace.Retry)
		defer ticker.Stop()
		for ctx.Err() == nil {
			p.look(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.pace.Retry)
		defer cancel()
		p.release(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// look renews the Lease, or checks which other process holds it.
func (p *Presence) look(ctx context.Context) {
	record, raw, err := p.lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		err = p.lock.Create(ctx, p.record(nil))
	case err == nil && (record.HolderIdentity == "" || record.HolderIdentity == p.lock.Identity()):
		err = p.lock.Update(ctx, p.record(record))
	case err == nil:
		err = p.seeOther(ctx, record, raw)
	}
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return // The next look shows which process was faster.
	}
	if err == nil || !apierrors.IsForbidden(err) && p.problems.Report(p.log, err) {
		p.unreadable = false
		return
	}
	if !p.unreadable {
		p.log.Warn("cannot hold the Lease, other replicas and uninstall cannot see this replica", "error", err,
			"remedy", "grant the permissions that the rbac command prints, with kubectl apply -f -")
	}
	p.unreadable = true
}

// seeOther reports another holder that renews the Lease, and takes the Lease from one that does not.
func (p *Presence) seeOther(ctx context.Context, record *resourcelock.LeaderElectionRecord, raw []byte) error {
	known := p.other == record.HolderIdentity
	switch {
	case !known:
		p.other, p.raw, p.changed, p.warned = record.HolderIdentity, raw, time.Now(), time.Time{}
	case !bytes.Equal(p.raw, raw):
		p.raw, p.changed = raw, time.Now()
		if time.Since(p.warned) >= reportAgain {
			p.warned = time.Now()
			p.log.Warn("another replica of this operator runs: without leader election both call handlers for the same objects",
				"holder", p.other, "remedy", "stop one of them, or run all with --leader-elect")
		}
	case time.Since(p.changed) >= lasts(record, p.pace):
		p.other = ""
		return p.lock.Update(ctx, p.record(record))
	}
	return nil
}

// lasts returns how long a Lease is held without a renewal.
func lasts(record *resourcelock.LeaderElectionRecord, pace Pace) time.Duration {
	if record.LeaseDurationSeconds > 0 {
		return time.Duration(record.LeaseDurationSeconds) * time.Second
	}
	return pace.Lasts
}

// record returns the content of the Lease while this process holds it.
func (p *Presence) record(before *resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: p.lock.Identity(), LeaseDurationSeconds: int(p.pace.Lasts / time.Second), AcquireTime: now, RenewTime: now,
	}
	if before == nil {
		return record
	}
	record.LeaderTransitions = before.LeaderTransitions
	if before.HolderIdentity == record.HolderIdentity {
		record.AcquireTime = before.AcquireTime
	} else {
		record.LeaderTransitions++
	}
	return record
}

// release gives up the Lease if this process holds it.
func (p *Presence) release(ctx context.Context) {
	record, _, err := p.lock.Get(ctx)
	if err != nil || record.HolderIdentity != p.lock.Identity() {
		return
	}
	free := p.record(record)
	free.HolderIdentity, free.LeaseDurationSeconds = "", 1 // As in client-go's leader election.
	if err := p.lock.Update(ctx, free); err != nil {
		p.log.Warn("cannot release the Lease, it will expire", "error", err)
	}
}
