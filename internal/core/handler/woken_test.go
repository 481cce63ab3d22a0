package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// A change of a related object triggers a level-triggered handler as an edit of its own object does, and ends a wait.
func TestARelatedObjectWakesALevel(t *testing.T) {
	retry := handler.Result{Outcome: record.Retry, Delay: time.Hour}
	for name, test := range map[string]struct {
		first handler.Result
		want  string
	}{
		"that is done":                           {first: handler.Result{Outcome: record.Done}, want: "sync(reconcile, 1)"},
		"that failed permanently":                {first: handler.Result{Outcome: record.Failed}, want: "sync(reconcile, 1)"},
		"that backs off":                         {first: retry, want: "sync(reconcile, 2)"},
		"that waits":                             {first: handler.Result{Outcome: record.Waiting, Delay: time.Hour}, want: "sync(reconcile, 1)?"},
		"but not one that asked for a delay":     {first: handler.Result{Outcome: record.Retry, Delay: time.Hour, Asked: true}},
		"nor one that the object does not match": {want: ""},
		"nor one whose object is being deleted":  {first: handler.Result{Outcome: record.Done}},
	} {
		t.Run(name, func(t *testing.T) {
			declaration := declared("sync", cause.Reconcile)
			if test.first.Outcome == "" {
				declaration = declared("sync", cause.Reconcile, "spec.size=large")
			}
			l := newLife(t, declaration)
			l.results["sync"] = test.first
			l.pass()
			l.woken = map[string]bool{"sync": true}
			l.deleting = name == "nor one whose object is being deleted"
			_, runs := l.pass()
			var got string
			if len(runs) > 0 {
				got = runs[0]
			}
			if got != test.want {
				t.Errorf("it runs as %q, want %q", got, test.want)
			}
		})
	}
}

// Triggers of level-triggered handlers do not affect other handlers, and are not a change of the object.
func TestARelatedObjectWakesNoOtherHandler(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("change", cause.Update), declared("sync", cause.Reconcile))
	l.expect(cause.Create, "make(create, 1)", "sync(reconcile, 1)")
	before := l.writes
	l.woken = map[string]bool{"sync": true, "change": true, "make": true}
	l.expect(cause.Reconcile, "sync(reconcile, 1)")
	l.woken = nil
	l.expect(cause.Noop)
	if l.writes != before {
		t.Errorf("%d writes", l.writes-before)
	}
}

// A delay that was requested with an error is kept, and the trigger is handled afterwards.
func TestAWakeIsKeptWhileAFailureWaits(t *testing.T) {
	l := newLife(t, declared("sync", cause.Reconcile))
	l.results["sync"] = handler.Result{Outcome: record.Retry, Delay: time.Hour, Asked: true}
	l.pass()
	l.succeed("sync")
	l.woken = map[string]bool{"sync": true}
	l.expect(cause.Reconcile)
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Reconcile, "sync(reconcile, 2)")
	l.expect(cause.Noop)
}
