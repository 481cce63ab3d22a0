package virtual_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 100: a startup handler that fails ends Run with its error, before Run sends any request. Of several replicas, the elected one runs the
// startup handlers, so with leader election the requests for the Lease come first.
func TestAFailedStartupSendsNoRequests(t *testing.T) {
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	said := &fixture.Notes{}
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[fixture.Widget](op).OnCreate("make", fixture.Nothing[fixture.Widget])
	op.OnStartup("first", func(context.Context, client.Client) error {
		said.Add("first")
		return nil
	})
	failed := errors.New("the licence has expired, password=hunter2hunter2")
	op.OnStartup("licence", func(context.Context, client.Client) error { return failed })
	op.OnStartup("never", func(context.Context, client.Client) error {
		said.Add("never")
		return nil
	})
	op.OnCleanup("neither", func(context.Context) error {
		said.Add("neither")
		return nil
	})
	err := op.Run(t.Context(), &rest.Config{Host: api.URL}, einmal.RunOptions{SingleReplica: true})
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "startup handler licence: the licence has expired") {
		t.Errorf("Run ended with %v", err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells what is secret: %v", err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
	said.Expect(t, "first")
}

// Scenario 100: the operator waits until startup handlers are done, and calls cleanup handlers after everything else. A failing cleanup handler
// does not stop the others.
func TestStartupAndCleanupEncloseAllElse(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			tries := 0
			op.OnStartup("database", func(context.Context, client.Client) error {
				if tries++; tries < 3 {
					return einmal.RetryAfter(time.Minute, errors.New("not there yet"))
				}
				said.Add("started")
				return nil
			})
			einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
				said.Add("made")
				<-time.After(10 * time.Second)
				said.Add("returned")
				return nil
			})
			op.OnCleanup("panics", func(context.Context) error { panic("no") })
			op.OnCleanup("last", func(ctx context.Context) error {
				until, has := ctx.Deadline()
				left := time.Until(until).Round(time.Second)
				said.Add("cleanup with %s left, %t", left, has)
				return nil
			})
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(90 * time.Second)
		said.Expect(w)
		w.Advance(35 * time.Second)
		said.Expect(w, "started", "made")
		w.Stop()
		said.Expect(w, "returned", "cleanup with 20s left, true")
	})
}

// Stopping while a startup handler waits is not a failure.
func TestAStopDuringTheStartup(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", fixture.Nothing[fixture.Widget])
			op.OnStartup("wait", func(context.Context, client.Client) error { return einmal.RequeueAfter(time.Hour) })
			op.OnCleanup("never", func(context.Context) error {
				w.Error("what has not started is not cleaned up")
				return nil
			})
			return op
		})
		w.Advance(time.Minute)
		w.Stop()
	})
}

func TestRunReportsMistakesInStartupAndCleanup(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[fixture.Widget](op).OnCreate("make", fixture.Nothing[fixture.Widget])
	op.OnStartup("twice", func(context.Context, client.Client) error { return nil })
	op.OnStartup("twice", func(context.Context, client.Client) error { return nil })
	op.OnCleanup("twice", nil)
	op.OnProbe("bad id!", nil)
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{SingleReplica: true})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`startup handler "twice" is declared twice`, `cleanup handler "twice" has no function`, `probe handler "bad id!": id must have`, `probe handler "bad id!" has no function`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}
