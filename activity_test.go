package einmal_test

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

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Scenario 100: a startup handler that fails ends Run with its error, before anything is asked of the API server.
func TestAFailedStartupAsksNothing(t *testing.T) {
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	said := &notes{}
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds))
	einmal.For[Widget](op).OnCreate("make", nothing[Widget])
	op.OnStartup("first", func(context.Context) error {
		said.add("first")
		return nil
	})
	failed := errors.New("the licence has expired, password=hunter2hunter2")
	op.OnStartup("licence", func(context.Context) error { return failed })
	op.OnStartup("never", func(context.Context) error {
		said.add("never")
		return nil
	})
	op.OnCleanup("neither", func(context.Context) error {
		said.add("neither")
		return nil
	})
	err := op.Run(t.Context(), &rest.Config{Host: api.URL}, einmal.RunOptions{})
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "startup handler licence: the licence has expired") {
		t.Errorf("Run ended with %v", err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells what is secret: %v", err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
	said.expect(t, "first")
}

// Scenario 100: the operator waits for what a startup handler waits for, and cleanup comes when everything else is over. What
// fails there keeps nobody from anything.
func TestStartupAndCleanupEncloseAllElse(t *testing.T) {
	said := &notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator(w)
			tries := 0
			op.OnStartup("database", func(context.Context) error {
				if tries++; tries < 3 {
					return einmal.RetryAfter(time.Minute, errors.New("not there yet"))
				}
				said.add("started")
				return nil
			})
			einmal.For[Widget](op).OnCreate("make", func(context.Context, *einmal.Change[Widget]) error {
				said.add("made")
				<-time.After(10 * time.Second)
				said.add("returned")
				return nil
			})
			op.OnCleanup("panics", func(context.Context) error { panic("no") })
			op.OnCleanup("last", func(ctx context.Context) error {
				until, has := ctx.Deadline()
				left := time.Until(until).Round(time.Second)
				said.add("cleanup with %s left, %t", left, has)
				return nil
			})
			return op
		})
		w.Create(widgetOf("one"))
		w.Advance(90 * time.Second)
		said.expect(w)
		w.Advance(35 * time.Second)
		said.expect(w, "started", "made")
		w.Stop()
		said.expect(w, "returned", "cleanup with 20s left, true")
	})
}

// A stop while a startup handler waits is no failure.
func TestAStopDuringTheStartup(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator(w)
			einmal.For[Widget](op).OnCreate("make", nothing[Widget])
			op.OnStartup("wait", func(context.Context) error { return einmal.RetryAfter(time.Hour, nil) })
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

func TestMistakesInActivitiesAreTold(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds))
	einmal.For[Widget](op).OnCreate("make", nothing[Widget])
	op.OnStartup("twice", func(context.Context) error { return nil })
	op.OnStartup("twice", func(context.Context) error { return nil })
	op.OnCleanup("twice", nil)
	op.OnProbe("bad id!", nil)
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`startup handler "twice" is declared twice`, `cleanup handler "twice" has no function`, `probe handler "bad id!": an id has`, `probe handler "bad id!" has no function`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}
