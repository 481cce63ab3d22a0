package handler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Scenarios 66 and 68 (docs/concepts/scenarios.md): what follows an attempt of a daemon, rule by rule.
func TestWhatFollowsAnAttemptOfADaemon(t *testing.T) {
	for _, test := range []struct {
		name    string
		limits  handler.Limits
		attempt int
		lasted  time.Duration
		result  handler.Result
		again   bool
		want    int
	}{
		{"it returns", handler.Limits{}, 1, second, handler.Result{Outcome: record.Done}, false, 1},
		{"it fails permanently", handler.Limits{}, 1, second, handler.Result{Outcome: record.Failed}, false, 1},
		{"it fails", handler.Limits{}, 1, second, handler.Result{Outcome: record.Retry}, true, 2},
		{"it asks for a time", handler.Limits{}, 3, second, handler.Result{Outcome: record.Waiting, Asked: true}, true, 3},
		{"the last attempt fails", handler.Limits{MaxAttempts: 3}, 3, second, handler.Result{Outcome: record.Retry}, false, 3},
		{"the last attempt fails after a long run", handler.Limits{MaxAttempts: 3}, 3, time.Hour, handler.Result{Outcome: record.Retry}, true, 2},
		{"it fails after some minutes", handler.Limits{}, 7, 5 * minute, handler.Result{Outcome: record.Retry}, true, 8},
		{"it fails after a long run", handler.Limits{}, 7, 5*minute + 1, handler.Result{Outcome: record.Retry}, true, 2},
		{"with a short backoff", handler.Limits{FirstBackoff: second, LongestBackoff: minute}, 7, 2 * minute, handler.Result{Outcome: record.Retry}, true, 2},
		{"the time for attempts is over", handler.Limits{Timeout: minute}, 2, 2 * minute, handler.Result{Outcome: record.Retry, Asked: true}, false, 2},
		{"the time for attempts starts again after a long run", handler.Limits{Timeout: 2 * time.Hour}, 2, time.Hour, handler.Result{Outcome: record.Retry}, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := tried(test.limits, test.attempt)
			from := begin()
			to := from.Add(test.lasted)
			run = run.Lasted(from, to)
			next, again := run.After(run.Judge("uid", test.result, to))
			if again != test.again || next.Attempt != test.want || !next.MaybeRepeated {
				t.Errorf("again %v with attempt %d, want %v with %d", again, next.Attempt, test.again, test.want)
			}
		})
	}
}

// Scenarios 63, 67 and 108 (docs/concepts/scenarios.md): which daemons run for an object. Its finalizer stays until they have ended.
func TestWhatADaemonAsksOfItsObject(t *testing.T) {
	deleted := &record.Record{UID: "uid", Deleted: true}
	for _, test := range []struct {
		name      string
		others    []handler.Declaration
		daemon    handler.Declaration
		state     handler.State
		cause     cause.Cause
		finalizer handler.Finalizer
		has       bool
	}{
		{name: "at first", cause: cause.Noop, finalizer: handler.Add, has: true},
		{name: "optional", daemon: handler.Declaration{Optional: true}, cause: cause.Noop, has: true},
		{name: "while it runs", state: handler.State{Marked: true, Held: true}, cause: cause.Noop, has: true},
		{name: "another client has removed the finalizer", state: handler.State{Held: true}, cause: cause.Noop, finalizer: handler.Add, has: true},
		{name: "the filter does not match", daemon: handler.Declaration{Scope: hasSize(2)}, cause: cause.Unmatched},
		{name: "the filter does not match any more", daemon: handler.Declaration{Scope: hasSize(2)}, state: handler.State{Marked: true, Held: true}, cause: cause.Unmatched},
		{name: "the filter does not match any more, the daemon has ended", daemon: handler.Declaration{Scope: hasSize(2)}, state: handler.State{Marked: true}, cause: cause.Unmatched, finalizer: handler.Remove},
		{name: "deleted", state: handler.State{Marked: true, Held: true, Deleting: true}, cause: cause.Delete},
		{name: "deleted, and ended", state: handler.State{Marked: true, Deleting: true}, cause: cause.Delete, finalizer: handler.Remove},
		{name: "deleted, without a finalizer", state: handler.State{Held: true, Deleting: true}, cause: cause.Free},
		{
			name: "deleted, the delete handler has finished", others: []handler.Declaration{declared("unmake", cause.Delete)},
			state: handler.State{Marked: true, Held: true, Deleting: true, Record: deleted}, cause: cause.Free,
		},
		{
			name: "deleted, the delete handler has finished, the daemon has ended", others: []handler.Declaration{declared("unmake", cause.Delete)},
			state: handler.State{Marked: true, Deleting: true, Record: deleted}, cause: cause.Free, finalizer: handler.Remove,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.daemon.ID, test.daemon.Verb = "guard", cause.Daemon
			kind := handler.Kind{Handlers: append(test.others, test.daemon)}
			test.state.UID, test.state.Now, test.state.Essence = "uid", begin(), object.Body{"spec": object.Body{"size": int64(1)}}
			plan := kind.Decide(test.state)
			got := []any{plan.Cause, plan.Finalizer, len(plan.Daemons) == 1, len(plan.Runs)}
			if diff := cmp.Diff([]any{test.cause, test.finalizer, test.has, 0}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
