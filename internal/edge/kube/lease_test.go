package kube_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// lock is a lock that accepts everything, or refuses it.
type lock struct {
	resourcelock.Interface
	refuses error
	holder  string
}

// Get reads the lease.
func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

// Identity names the process.
func (*lock) Identity() string { return "us" }

// Update takes the lease or releases it.
func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.refuses }

func renew(t *testing.T, lease *kube.Leadership) {
	t.Helper()
	if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil {
		t.Fatal(err)
	}
}

// Nothing is written after leadership is lost, not even by a process that was frozen and does not know that yet.
func TestAReplicaWritesOnlyWhileItHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &kube.Leadership{Interface: &lock{}, Timing: kube.NewLeaseTiming(1)}
		sent := 0
		through := lease.Fence(roundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		expect := func(when string, held bool) {
			t.Helper()
			if _, err := send(t.Context(), t, through, http.MethodPatch, "/api/v1/namespaces/default/secrets/one"); lease.Held() != held || errors.Is(err, kube.ErrNotLeading) == held {
				t.Errorf("%s: held: %v, a patch returns %v", when, lease.Held(), err)
			}
			for path, method := range map[string]string{
				"/api/v1/namespaces/default/secrets/one":             http.MethodGet,
				"/apis/authentication.k8s.io/v1/tokenreviews":        http.MethodPost,
				"/apis/authorization.k8s.io/v1/subjectaccessreviews": http.MethodPost,
			} {
				if _, err := send(t.Context(), t, through, method, path); err != nil {
					t.Errorf("%s: %s %s is refused: %v", when, method, path, err)
				}
			}
		}
		expect("before the election", false)
		renew(t, lease)
		expect("after the election", true)
		<-time.After(kube.NewLeaseTiming(1).Deadline)
		expect("while it tries to renew the lease", true)
		renew(t, lease)
		<-time.After(kube.NewLeaseTiming(1).Deadline)
		expect("for the same time after a renewal", true)
		<-time.After(kube.NewLeaseTiming(1).Lasts - kube.NewLeaseTiming(1).Deadline)
		expect("when others may take the lease", false)
		if sent != 18 {
			t.Errorf("%d requests were sent, want 18", sent)
		}
	})
}

// A loss during a pause of the whole process is detected when the pause ends.
func TestTheLossOfALeaseIsReportedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &kube.Leadership{Interface: &lock{}, Timing: kube.NewLeaseTiming(1)}
		renew(t, lease)
		begun, lost := time.Now(), make(chan time.Duration, 1)
		go func() {
			if lease.AwaitLoss(t.Context()) {
				lost <- time.Since(begun)
			}
		}()
		for range 10 {
			<-time.After(kube.NewLeaseTiming(1).Retry)
			renew(t, lease)
		}
		after := <-lost - 10*kube.NewLeaseTiming(1).Retry
		if after <= kube.NewLeaseTiming(1).Deadline || after >= kube.NewLeaseTiming(1).Lasts {
			t.Errorf("the loss was reported %s after the last renewal, want between %s and %s", after, kube.NewLeaseTiming(1).Deadline, kube.NewLeaseTiming(1).Lasts)
		}
		stopped, stop := context.WithCancel(t.Context())
		renew(t, lease)
		stop()
		if lease.AwaitLoss(stopped) {
			t.Error("a stop is reported as a loss")
		}
	})
}

// While a virtual machine is suspended, its monotonic clock stands still. Then the wall clock shows that the lease has expired.
func TestASuspendedMachineDoesNotHoldTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended time.Duration
		lease := &kube.Leadership{Interface: &lock{}, Timing: kube.NewLeaseTiming(1), Wall: func() time.Time {
			return time.Now().Round(0).Add(suspended)
		}}
		renew(t, lease)
		lost := make(chan time.Time, 1)
		go func() {
			if lease.AwaitLoss(t.Context()) {
				lost <- time.Now()
			}
		}()
		<-time.After(time.Second)
		if !lease.Held() {
			t.Error("it is not held after a second")
		}
		suspended = 20 * time.Second
		resumed := time.Now()
		if lease.Held() {
			t.Error("it is held after the suspension")
		}
		if after := (<-lost).Sub(resumed); after > kube.NewLeaseTiming(1).Retry {
			t.Errorf("the loss is reported %s after the end of the suspension", after)
		}
		suspended = -time.Hour
		renew(t, lease)
		suspended -= time.Hour
		if !lease.Held() {
			t.Error("the lease is lost when the clock is set back")
		}
		<-time.After(kube.NewLeaseTiming(1).Fenced())
		if lease.Held() {
			t.Error("the lease lasts longer when the clock is set back")
		}
	})
}

// A process that reads that another one holds the lease stops writing, whatever its clocks say.
func TestALeaseThatAnotherProcessHoldsIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &lock{holder: "us"}
		lease := &kube.Leadership{Interface: below, Timing: kube.NewLeaseTiming(1)}
		renew(t, lease)
		for holder, held := range map[string]bool{"us": true, "them": false} {
			below.holder = holder
			renew(t, lease)
			if _, _, err := lease.Get(t.Context()); err != nil || lease.Held() != held {
				t.Errorf("held by %s: held is %v, %v", holder, lease.Held(), err)
			}
		}
	})
}

// The lease is released only when every handler has returned.
func TestALeaseIsReleasedWhenAllWorkIsDone(t *testing.T) {
	below := &lock{}
	lease := &kube.Leadership{Interface: below, Timing: kube.NewLeaseTiming(1)}
	working := true
	lease.Idle(func() bool { return !working })
	renew(t, lease)
	release := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	if err := lease.Update(t.Context(), release); err == nil || !lease.Held() {
		t.Errorf("it is released while handlers run: %v", err)
	}
	working = false
	if err := lease.Update(t.Context(), release); err != nil || lease.Held() {
		t.Errorf("it is not released: %v", err)
	}
	below.refuses = errors.New("refused")
	if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err == nil || lease.Held() {
		t.Errorf("the lease counts as held after a refused write: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
