package main

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// The tenants that wait for their turn come back one after the other, not all at once.
func TestABackendHasItsShareOfTheWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var backend turns
		for range share {
			if _, ok := backend.take(time.Now()); !ok {
				t.Fatal("the share is smaller than it should be")
			}
		}
		waits := map[time.Duration]bool{}
		for range 100 {
			wait, ok := backend.take(time.Now())
			if ok || wait < shortestTurn || waits[wait] {
				t.Fatalf("beyond the share: %s, %t", wait, ok)
			}
			waits[wait] = true
		}
		backend.end(time.Second)
		if _, ok := backend.take(time.Now()); !ok {
			t.Error("a worker that was given back is not used")
		}
	})
}

// What has to settle is looked at after 5 seconds, and then less and less often, up to a minute, at times that differ between tenants.
func TestWaitsForWhatSettlesGrowAndDiffer(t *testing.T) {
	t.Parallel()
	var one, other observations
	differ := false
	for i, about := range []int{5, 10, 20, 40, 60, 60} {
		wait, second := one.nextSettling(), other.nextSettling()
		differ = differ || wait != second
		if wait.Seconds() < float64(about)*0.8 || wait.Seconds() > float64(about)*1.2 {
			t.Errorf("wait %d is %s, want about %d s", i+1, wait, about)
		}
	}
	if !differ {
		t.Error("two tenants wait equally long")
	}
}

// silentServer accepts connections and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return listener.Addr().String()
}

// While the cache of 64 tenants accepts connections and says nothing, a rotation on another backend takes about as long as without them.
func TestASilentCacheDoesNotSlowAnotherBackend(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.program = quick(t)
	silent := s.local()
	silent.ObjectMeta = metav1.ObjectMeta{Name: "silent"}
	silent.Spec.Postgres, silent.Spec.Cache.Redis.Nodes = nil, []string{silentServer(t)}
	s.make(t, silent)
	running := s.start(t)
	rotate := func(request string) time.Duration {
		t.Helper()
		began := time.Now()
		s.Kubectl(t, s.manifest("healthy", ", credentials: {rotation: {strategy: InPlace, requestId: "+request+"}}"), "apply", "-f", "-")
		s.await(t, "healthy", "rotated", func(of *v1.Tenant) bool {
			return of.Status.Phase == v1.Ready && of.Status.Apps[0].Database.RequestID == request && of.Status.Apps[0].Cache.RequestID == request
		})
		return time.Since(began)
	}
	s.Kubectl(t, s.manifest("healthy", ""), "apply", "-f", "-")
	s.awaitPhase(t, "healthy", v1.Ready)
	alone := rotate("alone")
	for i := range 64 {
		tenant := tenantOf(fmt.Sprintf("silent%d", i))
		tenant.Spec.BackendRef.Name = "silent"
		tenant.Spec.Apps = []v1.App{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
		s.make(t, tenant)
	}
	first := rotate("first") // While the first calls still wait for an answer.
	einmaltest.Eventually(t, "the cache of all is unreachable", func(ctx context.Context) error {
		var all v1.TenantList
		if err := s.List(ctx, &all); err != nil {
			return err
		}
		for _, one := range all.Items {
			if one.Name != "healthy" && condition(&one, v1.ConditionCacheReady) != "Unknown Unreachable" {
				return fmt.Errorf("%s is %s", one.Name, condition(&one, v1.ConditionCacheReady))
			}
		}
		return nil
	})
	second := rotate("second")
	t.Logf("a rotation took %s alone, %s and %s beside the silent cache", alone, first, second)
	if most := 3*alone + 3*time.Second; first > most || second > most {
		t.Errorf("a rotation takes %s and %s beside the silent cache, and %s alone", first, second, alone)
	}
	running.Stop(t)
}
