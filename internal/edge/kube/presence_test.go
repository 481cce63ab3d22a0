package kube

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedLease is a Lease in memory.
type sharedLease struct {
	mu     sync.Mutex
	record resourcelock.LeaderElectionRecord
}

func (l *sharedLease) read() resourcelock.LeaderElectionRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// memoryLock is a Lease as one of several processes sees it.
type memoryLock struct {
	resourcelock.Interface
	lease *sharedLease
	name  string
}

// Get reads the Lease.
func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	read := l.lease.read()
	if read.LeaseDurationSeconds == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "op")
	}
	return &read, []byte(read.HolderIdentity + read.RenewTime.Format(time.RFC3339Nano)), nil
}

// Create creates the Lease.
func (l *memoryLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update writes the Lease.
func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	l.lease.record = record
	return nil
}

// Identity names the process.
func (l *memoryLock) Identity() string { return l.name }

// Describe names the Lease.
func (*memoryLock) Describe() string { return "ns/op" }

// RecordEvent does nothing.
func (*memoryLock) RecordEvent(string) {}

// show holds the Lease for a process without leader election, until stop is called.
func show(t *testing.T, lease *sharedLease, name string, timing LeaseTiming) (stop func()) {
	t.Helper()
	presence := &Leadership{Interface: &memoryLock{lease: lease, name: name}, Timing: timing, Failed: func(err error) { t.Error(err) }}
	stop, err := presence.Show(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func expectHolder(t *testing.T, when string, lease *sharedLease, want string) {
	t.Helper()
	if got := lease.read().HolderIdentity; got != want {
		t.Errorf("%s: the holder is %q, want %q", when, got, want)
	}
}

func TestAReplicaWithoutElectionNeverTakesTheLeaseOfALiveHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{}
		stopFirst := show(t, lease, "first", NewLeaseTiming(1))
		<-time.After(time.Second)
		stopSecond := show(t, lease, "second", NewLeaseTiming(1))
		<-time.After(time.Minute)
		expectHolder(t, "while both run", lease, "first")
		stopFirst()
		expectHolder(t, "when the first has stopped", lease, "")
		<-time.After(5 * time.Second)
		expectHolder(t, "later", lease, "second")
		stopSecond()
		expectHolder(t, "when the second has stopped", lease, "")
	})
}

// The Lease says how long it lasts, so that another program knows when its holder has crashed.
func TestAReplicaWithoutElectionHoldsTheLeaseForItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{}
		stop := show(t, lease, "us", LeaseTimingOf(30*time.Second))
		begun := time.Now()
		<-time.After(3 * time.Second)
		if held := lease.read(); held.LeaseDurationSeconds != 30 || held.RenewTime.After(begun) {
			t.Errorf("after 3 seconds the Lease is %+v", held)
		}
		<-time.After(2 * time.Second)
		if held := lease.read(); !held.RenewTime.After(begun) {
			t.Errorf("after 5 seconds the Lease was not renewed: %+v", held)
		}
		stop()
	})
}

func TestAReplicaWithoutElectionTakesTheLeaseOfADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: "dead", LeaseDurationSeconds: 15, RenewTime: metav1.Now()}}
		stop := show(t, lease, "us", NewLeaseTiming(1))
		<-time.After(14 * time.Second)
		expectHolder(t, "after 14 seconds", lease, "dead")
		<-time.After(6 * time.Second)
		expectHolder(t, "after 20 seconds", lease, "us")
		stop()
	})
}

// A replica works without permissions for the Lease, and continues to ask for it.
func TestAReplicaWithoutElectionReportsThatItCannotHoldTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, failures := &lockedLease{memoryLock{lease: &sharedLease{}, name: "us"}}, 0
		presence := &Leadership{Interface: lease, Timing: NewLeaseTiming(1), Failed: func(err error) {
			if failures++; !apierrors.IsForbidden(err) {
				t.Error(err)
			}
		}}
		stop, err := presence.Show(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		stop()
		if failures < 2 {
			t.Errorf("in 10 seconds %d failures were reported", failures)
		}
	})
}

// lockedLease is a Lease that may be read and not created.
type lockedLease struct{ memoryLock }

// Create refuses.
func (*lockedLease) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "op", nil)
}

// leaseReader reads one Lease, which its holder renews at a given time, and which another client annotates before that.
type leaseReader struct {
	client.Reader
	lease              *coordinationv1.Lease
	annotated, renewed time.Time
}

// Get reads the Lease.
func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	lease, _ := into.(*coordinationv1.Lease)
	r.lease.DeepCopyInto(lease)
	if time.Now().After(r.annotated) {
		lease.ResourceVersion = "2"
	}
	if renewed := metav1.NewMicroTime(r.lease.Spec.RenewTime.Add(time.Minute)); time.Now().After(r.renewed) {
		lease.Spec.RenewTime, lease.ResourceVersion = &renewed, "3"
	}
	return nil
}

// The wall clock of the holder does not matter: a Lease is held if it is renewed, and expires if it is not.
func TestALeaseIsHeldIfItIsRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		duration        int32
		renewed         time.Duration
		holder, version string
		atLeast, atMost time.Duration
	}{
		"renewed after a pause":        {15, 9 * time.Second, "them", "3", 9 * time.Second, 10 * time.Second},
		"not renewed, as after a kill": {15, time.Hour, "", "2", 15 * time.Second, 16 * time.Second},
		"a long Lease":                 {120, 110 * time.Second, "them", "3", 110 * time.Second, 111 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				holder, longAgo := "them", metav1.NewMicroTime(time.Now().Add(-time.Hour))
				begun := time.Now()
				api := leaseReader{annotated: begun.Add(5 * time.Second), renewed: begun.Add(test.renewed), lease: &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &test.duration, RenewTime: &longAgo},
				}}
				named := ""
				found, lease, err := AwaitHolder(t.Context(), api, client.ObjectKey{}, func(holder string) { named = holder })
				if err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(begun); waited < test.atLeast || waited > test.atMost {
					t.Errorf("it has waited for %s", waited)
				}
				if found != test.holder || lease.ResourceVersion != test.version || named != "them" {
					t.Errorf("the holder is %q in version %s, and it has waited for %q", found, lease.ResourceVersion, named)
				}
			})
		})
	}
}
