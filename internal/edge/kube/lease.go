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

// Pace is how long a Lease is held without being renewed, when its holder gives up renewing it, and how often it is renewed.
type Pace struct{ Lasts, Deadline, Retry time.Duration }

// NewPace is the pace with which controller-runtime comes, made slower so many times.
func NewPace(slower int) Pace {
	unit := time.Duration(slower) * time.Second
	return Pace{Lasts: 15 * unit, Deadline: 10 * unit, Retry: 2 * unit}
}

// Fenced is how long after a renewal the holder may write. What is on its way then has arrived when others may take the
// Lease.
func (p Pace) Fenced() time.Duration { return p.Deadline + p.Retry }

// ErrNotLeading is what a process gets that asks for a change and does not hold the Lease, or cannot know that it does.
var ErrNotLeading = errors.New("this replica does not hold the lease, so it changes nothing")

var errAtWork = errors.New("handlers have not returned, so the lease is not released: it ends by itself")

// Leadership is the Lease by which one of several replicas is the one that acts, as one process knows it. It is the lock of
// a leader election, which decides; this one refuses what an election cannot: a write by a process that was frozen for
// longer than it holds the Lease, and a release while handlers run.
type Leadership struct {
	resourcelock.Interface

	Pace Pace
	// Wall is the clock on the wall; nil for that of the machine.
	Wall func() time.Time
	// Failed is called if the Lease cannot be read; nil for no one.
	Failed func(error)

	mu sync.Mutex
	// renewed is when the Lease was renewed last, by the monotonic clock, and renewedAt by the clock on the wall; zero for not held. The
	// monotonic clock stands still while a virtual machine is suspended.
	renewed, renewedAt time.Time
	idle               func() bool
}

// NewLeadership makes the lock. The Lease is the one at the place, and the process is named by its host and by chance.
func NewLeadership(config *rest.Config, place types.NamespacedName, pace Pace) (*Leadership, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = pace.Deadline / 2 // So that one request that hangs does not cost the leadership.
	pods, err := core.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client of the leader election: %w", err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client of the leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find out the host's name for the leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, place.Namespace, place.Name, pods, leases,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())})
	if err != nil {
		return nil, fmt.Errorf("make the lock of the leader election: %w", err)
	}
	return &Leadership{Interface: lock, Pace: pace}, nil
}

// Idle says how to find out whether all work is done, so that the Lease can be released.
func (l *Leadership) Idle(idle func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = idle
}

// Get reads the Lease.
func (l *Leadership) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil && l.Failed != nil {
		l.Failed(err)
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; grant the rights that the verb rbac prints, or run one replica with --leader-elect=false", err)
	}
	if err == nil && record.HolderIdentity != l.Identity() { // mutant: other-holder-ignored
		l.lose()
	}
	return record, raw, err
}

// Create takes the Lease that nobody has had.
func (l *Leadership) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update takes the Lease, renews it, or releases it.
func (l *Leadership) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *Leadership) take(record resourcelock.LeaderElectionRecord, write func() error) error {
	release := record.HolderIdentity != l.Identity()
	if release && !l.released() {
		return errAtWork
	}
	asked, askedAt := time.Now(), l.wall() // Others count from later on.
	if err := write(); err != nil || release {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.renewedAt = asked, askedAt
	return nil
}

// released lets go of the Lease, if all work is done.
func (l *Leadership) released() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil && !l.idle() {
		return false
	}
	l.renewed, l.renewedAt = time.Time{}, time.Time{}
	return true
}

// lose notes that another process holds the Lease.
func (l *Leadership) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.renewedAt = time.Time{}, time.Time{}
}

// wall reads the clock on the wall, without the monotonic one.
func (l *Leadership) wall() time.Time {
	if l.Wall != nil {
		return l.Wall()
	}
	return time.Now().Round(0)
}

// Held tells whether the process holds the Lease, and nobody else can have it yet.
func (l *Leadership) Held() bool { return l.left() > 0 }

// left is for how long the Lease is held at least, by the clock that has advanced further.
func (l *Leadership) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	passed := time.Since(l.renewed)
	passed = max(passed, l.wall().Sub(l.renewedAt)) // mutant: suspended-machine-leads
	return l.Pace.Fenced() - passed
}

// AwaitLoss returns true when the Lease is not held any more, and false when the context ends before. The election itself
// finds out later: after a pause of the whole process it goes on asking for as long as it does after each renewal.
func (l *Leadership) AwaitLoss(ctx context.Context) bool {
	for {
		left := l.left()
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(min(left, l.Pace.Retry)) // The clock on the wall may jump.
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// Fence lets reading requests pass, and those that change something only while the Lease is held.
func (l *Leadership) Fence(next http.RoundTripper) http.RoundTripper {
	return fence{held: l.Held, next: next}
}

type fence struct {
	held func() bool
	next http.RoundTripper
}

// RoundTrip sends a request, if it may be sent.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead && !f.held() {
		return nil, ErrNotLeading
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find what is within.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }
