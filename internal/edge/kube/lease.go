package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseTiming holds how long a Lease is held without a renewal, when its holder stops trying to renew it, and how often it is renewed.
type LeaseTiming struct{ Lasts, Deadline, Retry time.Duration }

// LeaseTimingOf returns the durations for a Lease that is held for lasts without a renewal, in the proportions of controller-runtime.
func LeaseTimingOf(lasts time.Duration) LeaseTiming {
	return LeaseTiming{Lasts: lasts, Deadline: lasts * 10 / 15, Retry: lasts * 2 / 15}
}

// NewLeaseTiming returns the durations that controller-runtime uses by default, multiplied by slower.
func NewLeaseTiming(slower int) LeaseTiming {
	unit := time.Duration(slower) * time.Second
	return LeaseTiming{Lasts: 15 * unit, Deadline: 10 * unit, Retry: 2 * unit}
}

// Fenced returns how long after a renewal the holder may write. The rest of the Lease is time for requests in transit to arrive before
// another process can take the Lease.
func (p LeaseTiming) Fenced() time.Duration { return p.Deadline + p.Retry }

// ErrNotLeading is the error of a write by a process that does not hold the Lease or cannot be sure that it does.
var ErrNotLeading = errors.New("this replica does not hold the Lease and must not write")

var errAtWork = errors.New("handlers are still running; the Lease is not released and will expire")

// Leadership is the Lease that decides which of several replicas is active, as one process sees it. It is the lock of a leader election.
// In addition, it prevents what an election cannot: writes by a process that was frozen for longer than it holds the Lease, and a
// release while handlers run.
type Leadership struct {
	resourcelock.Interface

	Timing LeaseTiming
	// Wall returns the wall clock time; nil means that of the machine.
	Wall func() time.Time
	// Failed is called if the Lease cannot be read or written. It may be nil.
	Failed func(error)

	mu sync.Mutex
	// renewed is when the Lease was last renewed by the monotonic clock, and renewedAt by the wall clock; both are zero if it is not held.
	// The monotonic clock stops while a virtual machine is suspended.
	renewed, renewedAt time.Time
	idle               func() bool
}

// NewLeadership creates the lock for the Lease at the given place. The identity of the process is its hostname and a random part.
func NewLeadership(config *rest.Config, place types.NamespacedName, timing LeaseTiming) (*Leadership, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = timing.Deadline / 2 // A single hanging request must not cost the leadership.
	pods, err := core.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client for leader election: %w", err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client for leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get hostname for leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, place.Namespace, place.Name, pods, leases,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())})
	if err != nil {
		return nil, fmt.Errorf("create lock for leader election: %w", err)
	}
	return &Leadership{Interface: lock, Timing: timing}, nil
}

// Idle sets the function that reports whether all work has ended, so that the Lease can be released.
func (l *Leadership) Idle(idle func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = idle
}

// Get reads the Lease.
func (l *Leadership) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.report(ctx, err)
	if LacksPermission(err) {
		err = fmt.Errorf("%w; grant the permissions that the rbac command prints, or run one replica with --leader-elect=false", err)
	}
	if err == nil && record.HolderIdentity != l.Identity() { // mutant: other-holder-ignored
		l.lose()
	}
	return record, raw, err
}

// report reports that the Lease cannot be used. That it does not exist, or that another process was faster, is no failure.
func (l *Leadership) report(ctx context.Context, err error) {
	expected := apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	if err != nil && !expected && ctx.Err() == nil && l.Failed != nil {
		l.Failed(err)
	}
}

// Create takes a Lease that does not exist yet.
func (l *Leadership) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, record, l.Interface.Create)
}

// Update takes, renews or releases the Lease.
func (l *Leadership) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, record, l.Interface.Update)
}

func (l *Leadership) take(
	ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	release := record.HolderIdentity != l.Identity()
	if release && !l.released() {
		return errAtWork
	}
	asked, askedAt := time.Now(), l.wall() // Other processes measure from a later time.
	err := write(ctx, record)
	l.report(ctx, err)
	if err != nil || release {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.renewedAt = asked, askedAt
	return nil
}

// released gives up the Lease if all work has ended, and reports whether it did.
func (l *Leadership) released() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil && !l.idle() {
		return false
	}
	l.renewed, l.renewedAt = time.Time{}, time.Time{}
	return true
}

// lose records that another process holds the Lease.
func (l *Leadership) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.renewedAt = time.Time{}, time.Time{}
}

// wall returns the wall clock time, without a monotonic reading.
func (l *Leadership) wall() time.Time {
	if l.Wall != nil {
		return l.Wall()
	}
	return time.Now().Round(0)
}

// Held reports whether the process holds the Lease and no other process can have it yet.
func (l *Leadership) Held() bool { return l.left() > 0 }

// left returns for how long the Lease is at least held, by the clock that has advanced further.
func (l *Leadership) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	passed := time.Since(l.renewed)
	passed = max(passed, l.wall().Sub(l.renewedAt)) // mutant: suspended-machine-leads
	return l.Timing.Fenced() - passed
}

// AwaitLoss returns true when the Lease is no longer held, and false if the context ends before that. The election itself notices the
// loss later: after a pause of the whole process it keeps trying for as long as after a renewal.
func (l *Leadership) AwaitLoss(ctx context.Context) bool {
	for {
		left := l.left()
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(min(left, l.Timing.Retry)) // The wall clock may jump.
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// Fence returns a transport that always sends reads, and questions about permissions, but sends writes only while the Lease is held.
func (l *Leadership) Fence(next http.RoundTripper) http.RoundTripper {
	return fence{held: l.Held, next: next}
}

type fence struct {
	held func() bool
	next http.RoundTripper
}

// RoundTrip sends a request if that is allowed.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	if TargetOf(request).write && !f.held() {
		return nil, ErrNotLeading
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }
