package daemons_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// emptyCache has no object.
type emptyCache struct{ client.Reader }

// Get finds nothing.
func (emptyCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("not found")
}

// kept is a kind with one daemon, and what its daemons do.
type kept struct {
	*daemons.Daemons

	abandoned atomic.Int64
	woken     atomic.Int64
	submitted atomic.Int64
}

// newKept returns daemons that do this. Their grace is 10 s, and they are abandoned 10 s later.
func newKept(t *testing.T, do func(ctx context.Context, call *attempt.Call) error) *kept {
	t.Helper()
	registered, err := metrics.Register(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	kind := declaration.Kind{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		New: func() client.Object { return nil },
		Handlers: []declaration.Handler{{
			Declaration: handler.Declaration{ID: "guard", Verb: cause.Daemon}, Call: do, StopGrace: 10 * time.Second, Abandon: 10 * time.Second,
		}},
	}
	events, stop := report.NewEvents(nil, "op.example.com")
	t.Cleanup(stop)
	views := &schemaview.Current{}
	views.Set(schemaview.View{Pure: kind.Pure("op.example.com", object.Defaults{})})
	k := &kept{}
	k.Daemons = daemons.New(daemons.Options{
		Kind: kind, Views: views, Cache: emptyCache{}, Abandoned: &k.abandoned,
		Reports: &report.Kind{
			Identity: "op.example.com", GVK: kind.GVK, Log: slog.New(slog.DiscardHandler), Redactor: redact.New(), Events: events,
			Metrics: registered.Kind("op.example.com", "widgets"),
		},
		Invoked: func(types.NamespacedName) {},
		Wake:    func(types.NamespacedName) { k.woken.Add(1) },
		Submit:  func(types.NamespacedName, objects.Edits) { k.submitted.Add(1) },
		Limit:   func(grace time.Duration) time.Duration { return grace },
		Why:     func() error { return errors.New("the operator stops") },
	})
	return k
}

func one() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "one"} }

func (k *kept) start() bool {
	return k.Start(daemons.Daemon{
		Key: one(), UID: "u", Memo: &sync.Map{}, Object: object.Body{"spec": object.Body{"size": "1"}},
		Run: handler.Run{Declaration: handler.Declaration{ID: "guard", Verb: cause.Daemon}, Reason: cause.Daemon, Attempt: 1, Started: time.Now()},
	})
}

// state is what is known of the daemon: whether there is one, whether the object waits for it, and how many are abandoned.
func (k *kept) state() [3]any {
	synctest.Wait()
	return [3]any{k.Has(one(), "u", "guard"), k.Hold(one(), "u"), k.abandoned.Load()}
}

func (k *kept) expect(t *testing.T, when string, has, holds bool, abandoned int64) {
	t.Helper()
	if diff := cmp.Diff([3]any{has, holds, abandoned}, k.state()); diff != "" {
		t.Errorf("%s, there is one, it holds the object, abandoned (-want +got):\n%s", when, diff)
	}
}

// A daemon that is stopped gets its grace, then its context ends, and then nothing waits for it any more. It makes room when it returns.
func TestADaemonIsStoppedInStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, returns := make(chan error, 1), make(chan struct{})
		k := newKept(t, func(ctx context.Context, _ *attempt.Call) error {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			<-returns
			return nil
		})
		if !k.start() {
			t.Fatal("it is not started")
		}
		k.expect(t, "while it runs", true, true, 0)
		k.StopAll(one(), daemons.ErrObjectDeleted)
		k.StopAll(one(), daemons.ErrNotMatched) // It is stopping already.
		<-time.After(9 * time.Second)
		k.expect(t, "in its grace", true, true, 0)
		if len(ended) > 0 {
			t.Error("its context has ended before its grace")
		}
		<-time.After(2 * time.Second)
		if why := <-ended; !errors.Is(why, daemons.ErrObjectDeleted) {
			t.Errorf("the cause is %v", why)
		}
		k.expect(t, "after its grace", true, true, 0)
		<-time.After(10 * time.Second)
		k.expect(t, "when it is abandoned", true, false, 1)
		if k.woken.Load() != 1 {
			t.Errorf("its object was woken %d times, want 1", k.woken.Load())
		}
		k.Wait() // For nothing.
		close(returns)
		k.expect(t, "when it has returned", false, false, 0)
	})
}

// A daemon that has returned by itself is not started again until it is stopped. After Close, none is started.
func TestADaemonThatReturnsIsNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, func(_ context.Context, call *attempt.Call) error {
			call.Left = object.With(call.Given, object.Path{"status", "phase"}, "x")
			return nil
		})
		k.start()
		k.expect(t, "when it has returned", true, false, 0)
		if k.submitted.Load() != 1 || k.woken.Load() < 1 {
			t.Errorf("its changes were handed in %d times", k.submitted.Load())
		}
		k.Stop(one(), func(uid, id string) error {
			if uid == "u" && id == "guard" {
				return daemons.ErrNotMatched
			}
			return nil
		})
		k.expect(t, "when it is not wanted", false, false, 0)
		if !k.start() {
			t.Error("it is not started when it is wanted again")
		}
		synctest.Wait()
		k.Close(errors.New("the operator stops"))
		k.expect(t, "after the end", false, false, 0)
		if k.start() {
			t.Error("it is started after the end")
		}
	})
}

// The end of an object is a reason that handlers can ask for, whether the object is being deleted or gone.
func TestAGoneObjectIsADeletedOne(t *testing.T) {
	if !errors.Is(daemons.ErrObjectGone, daemons.ErrObjectDeleted) || errors.Is(daemons.ErrNotMatched, daemons.ErrObjectDeleted) {
		t.Error("ErrObjectGone is not ErrObjectDeleted, or ErrNotMatched is")
	}
}
