package kube

import (
	"context"
	"log/slog"
	"strings"
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

func newTestPresence(lease *sharedLease, name string, log *strings.Builder) *Presence {
	return &Presence{lock: &memoryLock{lease: lease, name: name}, pace: NewPace(1), log: slog.New(slog.NewTextHandler(log, nil)), problems: &ProblemLog{}}
}

func expectHolder(t *testing.T, when string, lease *sharedLease, want string) {
	t.Helper()
	if got := lease.read().HolderIdentity; got != want {
		t.Errorf("%s: the holder is %q, want %q", when, got, want)
	}
}

func TestAReplicaWithoutElectionReportsALiveHolderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{}
		var ofFirst, ofSecond strings.Builder
		stopFirst := newTestPresence(lease, "first", &ofFirst).Keep(t.Context())
		<-time.After(time.Second)
		stopSecond := newTestPresence(lease, "second", &ofSecond).Keep(t.Context())
		<-time.After(30*time.Second + 500*time.Millisecond) // Not at the moment of a look.
		expectHolder(t, "while both run", lease, "first")
		stopFirst()
		expectHolder(t, "when the first has stopped", lease, "")
		<-time.After(3 * time.Second)
		expectHolder(t, "later", lease, "second")
		stopSecond()
		if text := ofSecond.String(); strings.Count(text, "another replica of this operator runs") != 1 || !strings.Contains(text, "holder=first") || ofFirst.Len() > 0 {
			t.Errorf("the logs are\n%s\nand\n%s", &ofFirst, text)
		}
	})
}

// The Lease says how long it lasts, so that another program knows when its holder has crashed.
func TestAReplicaWithoutElectionHoldsTheLeaseForItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{}
		presence := newTestPresence(lease, "us", &strings.Builder{})
		presence.pace = PaceOf(30 * time.Second)
		stop := presence.Keep(t.Context())
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

func TestAReplicaWithoutElectionTakesTheLeaseOfADeadHolderWithoutAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &sharedLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: "dead", LeaseDurationSeconds: 15, RenewTime: metav1.Now()}}
		var log strings.Builder
		stop := newTestPresence(lease, "us", &log).Keep(t.Context())
		<-time.After(14 * time.Second)
		expectHolder(t, "after 14 seconds", lease, "dead")
		<-time.After(4 * time.Second)
		expectHolder(t, "after 18 seconds", lease, "us")
		stop()
		if log.Len() > 0 {
			t.Errorf("the log is\n%s", &log)
		}
	})
}

// leaseReader reads one Lease, which is renewed at a given time.
type leaseReader struct {
	client.Reader
	lease   *coordinationv1.Lease
	renewed time.Time
}

// Get reads the Lease.
func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	lease, _ := into.(*coordinationv1.Lease)
	r.lease.DeepCopyInto(lease)
	if time.Now().After(r.renewed) {
		lease.ResourceVersion = "2"
	}
	return nil
}

// The wall clock of the holder does not matter: a Lease is held if it is renewed, and expires if it is not.
func TestALeaseIsHeldIfItIsRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		renewed time.Duration
		holder  string
		waited  time.Duration
	}{
		"renewed after a pause":        {9 * time.Second, "them", 10 * time.Second},
		"not renewed, as after a kill": {time.Hour, "", 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				holder, seconds, longAgo := "them", int32(15), metav1.NewMicroTime(time.Now().Add(-time.Hour))
				api := leaseReader{renewed: time.Now().Add(test.renewed), lease: &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &longAgo},
				}}
				read, err := ReadHolding(t.Context(), api, client.ObjectKey{})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				read, err = read.AwaitRenewal(t.Context(), api)
				if waited := time.Since(begun); err != nil || read.Holder != test.holder || waited > test.waited {
					t.Errorf("the holder is %q after %s, %v", read.Holder, waited, err)
				}
			})
		})
	}
}
