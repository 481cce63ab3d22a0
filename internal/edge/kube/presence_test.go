package kube

import (
	"context"
	"log/slog"
	"strings"
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

// memoryLock is a Lease in memory, as one of several processes sees it.
type memoryLock struct {
	resourcelock.Interface
	lease *resourcelock.LeaderElectionRecord
	name  string
}

// Get reads the Lease.
func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.lease.LeaseDurationSeconds == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "op")
	}
	read := *l.lease
	return &read, []byte(read.HolderIdentity + read.RenewTime.Format(time.RFC3339Nano)), nil
}

// Create makes the Lease.
func (l *memoryLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update writes the Lease.
func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	*l.lease = record
	return nil
}

// Identity names the process.
func (l *memoryLock) Identity() string { return l.name }

func TestAReplicaWithoutElectionReportsALiveHolderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, log := &resourcelock.LeaderElectionRecord{}, &strings.Builder{}
		made := func(name string) *Presence {
			return &Presence{lock: &memoryLock{lease: lease, name: name}, pace: NewPace(1), log: slog.New(slog.NewTextHandler(log, nil)), problems: &ProblemLog{}}
		}
		stopFirst := made("first").Keep(t.Context())
		<-time.After(time.Second)
		stopSecond := made("second").Keep(t.Context())
		<-time.After(30 * time.Second)
		if lease.HolderIdentity != "first" || strings.Count(log.String(), "another replica of this operator runs") != 1 || !strings.Contains(log.String(), "holder=first") {
			t.Errorf("the holder is %q, and the log is\n%s", lease.HolderIdentity, log)
		}
		stopFirst()
		if lease.HolderIdentity != "" {
			t.Errorf("the Lease is not released: %+v", lease)
		}
		<-time.After(3 * time.Second)
		if lease.HolderIdentity != "second" {
			t.Errorf("the other replica does not hold the Lease: %+v", lease)
		}
		stopSecond()
	})
}

func TestAReplicaWithoutElectionTakesTheLeaseOfADeadHolderWithoutAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &resourcelock.LeaderElectionRecord{HolderIdentity: "dead", LeaseDurationSeconds: 15, RenewTime: metav1.Now()}
		log := &strings.Builder{}
		stop := (&Presence{
			lock: &memoryLock{lease: lease, name: "us"}, pace: NewPace(1), log: slog.New(slog.NewTextHandler(log, nil)), problems: &ProblemLog{},
		}).Keep(t.Context())
		<-time.After(14 * time.Second)
		if lease.HolderIdentity != "dead" {
			t.Errorf("after 14 seconds the holder is %q", lease.HolderIdentity)
		}
		<-time.After(4 * time.Second)
		if lease.HolderIdentity != "us" || log.Len() > 0 {
			t.Errorf("after 18 seconds the holder is %q, and the log is\n%s", lease.HolderIdentity, log)
		}
		stop()
	})
}

// leaseReader reads one Lease.
type leaseReader struct {
	client.Reader
	lease *coordinationv1.Lease
}

// Get reads the Lease.
func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	lease, _ := into.(*coordinationv1.Lease)
	r.lease.DeepCopyInto(lease)
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
				api := leaseReader{lease: &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &longAgo},
				}}
				read, err := ReadHolding(t.Context(), api, client.ObjectKey{})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				renewal := time.AfterFunc(test.renewed, func() { api.lease.ResourceVersion = "2" })
				defer renewal.Stop()
				read, err = read.AwaitRenewal(t.Context(), api)
				if waited := time.Since(begun); err != nil || read.Holder != test.holder || waited > test.waited {
					t.Errorf("the holder is %q after %s, %v", read.Holder, waited, err)
				}
			})
		})
	}
}
