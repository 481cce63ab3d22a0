package apiserver_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// candidate stands for election until it is stopped; it notes when it leads and when no more.
func candidate(t *testing.T, server *apiserver.Server, name string, note func(string)) (stop func()) {
	t.Helper()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "leader"},
		Client:     coreOf(t, server).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { note(name + " leads") },
			OnStoppedLeading: func() { note(name + " stops") },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func TestLeaderIsElectedInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t)
		defer server.Close()
		var mu sync.Mutex
		var noted []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, what)
		}
		stopOne := candidate(t, server, "one", note)
		pass(time.Minute)
		stopTwo := candidate(t, server, "two", note)
		pass(10 * time.Minute)
		stopOne()
		pass(time.Minute)
		stopTwo()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"one leads", "one stops", "two leads", "two stops"}; !slices.Equal(noted, want) {
			t.Errorf("what happened is %v, want %v", noted, want)
		}
	})
}
