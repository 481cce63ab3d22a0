package handler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// life takes one object through reconciliations, as the engine does, with the results that the test sets.
type life struct {
	t        *testing.T
	kind     handler.Kind
	essence  object.Body
	stored   string // the record in the object
	now      time.Time
	deleting bool
	marked   bool
	resumed  map[string]bool
	// settled, inherited, older and recreate are as in State.
	settled, inherited, older bool
	recreate, release         string
	words                     map[string]string
	waits                     map[string]time.Time
	levels                    map[string]record.Entry
	woken, broken             map[string]bool
	// results are by handler. A handler without one succeeds.
	results map[string]handler.Result
	// during is called while a handler runs.
	during func(id string)
	writes int
}

// atCreation among the fields of a handler makes it handle creations too.
const atCreation = "at-creation"

// declared returns a handler that looks at fields. A field such as spec.color=red is a filter.
func declared(id string, verb cause.Cause, fields ...string) handler.Declaration {
	found := handler.Declaration{ID: id, Verb: verb}
	for _, field := range fields {
		if field == atCreation {
			found.AtCreation = true
			continue
		}
		if name, want, is := strings.Cut(field, "="); is {
			path, err := object.ParsePath(name)
			if err != nil {
				panic(err)
			}
			found.Scope = filter.Field{Path: path, Match: filter.Equals(want)}
			continue
		}
		path, err := object.ParsePath(field)
		if err != nil {
			panic(err)
		}
		found.Fields = append(found.Fields, path)
	}
	return found
}

func newLife(t *testing.T, handlers ...handler.Declaration) *life {
	return &life{
		t: t, kind: handler.Kind{Handlers: handlers}, essence: spec("a", 1, "b", 1),
		now:     time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC),
		resumed: map[string]bool{}, waits: map[string]time.Time{}, levels: map[string]record.Entry{}, results: map[string]handler.Result{},
	}
}

func spec(pairs ...any) object.Body {
	fields := object.Body{}
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if number, is := value.(int); is {
			value = int64(number)
		}
		fields[fmt.Sprint(pairs[i])] = value
	}
	return object.Body{"spec": fields}
}

func (l *life) state() handler.State {
	state := handler.State{
		UID: "uid", APIVersion: "g/v1", Essence: l.essence, Deleting: l.deleting, Marked: l.marked,
		Resumed: l.resumed, Waits: l.waits, Levels: l.levels, Woken: l.woken, Broken: l.broken, Now: l.now,
		Settled: l.settled, Inherited: l.inherited, Older: l.older, Recreate: l.recreate, Release: l.release, Words: l.words,
	}
	if l.stored != "" {
		r, err := record.Decode(l.stored)
		if err != nil {
			l.t.Fatal(err)
		}
		state.Record = &r
	}
	return state
}

// pass makes one reconciliation and returns its cause and the runs, each as "id(reason, attempt)" with its diff.
func (l *life) pass() (cause.Cause, []string) {
	l.t.Helper()
	plan := l.kind.Decide(l.state())
	if plan.Err != nil {
		l.t.Fatal(plan.Err)
	}
	if plan.Finalizer == handler.Add {
		l.marked = true
		l.writes++
		plan = l.kind.Decide(l.state())
	}
	l.nothingToResume(plan.Outside)
	r := plan.Record
	seen := l.essence
	for _, given := range plan.GivenUp {
		l.resumed[given.ID] = l.resumed[given.ID] || given.Verb == cause.Resume
		r = l.kind.Fold(r, given.Run, given.Result, seen, l.now)
	}
	var runs []string
	for _, run := range plan.Runs {
		runs = append(runs, describe(run, seen))
		if l.during != nil {
			l.during(run.ID)
		}
		result, given := l.results[run.ID]
		if !given {
			result.Outcome = record.Done
		}
		if run.Reason == cause.Resume && !result.Outcome.Open() {
			l.resumed[run.ID] = true
		}
		if run.Reason == cause.Reconcile {
			delete(l.woken, run.ID)
			l.levels[run.ID] = l.kind.FoldLevel("uid", run, result, seen, l.now)
		}
		r = l.kind.Fold(r, run, result, seen, l.now)
	}
	l.save(plan, r, seen)
	return plan.Cause, runs
}

// nothingToResume marks resume handlers that the object does not match: if it matches later, there is nothing to resume.
func (l *life) nothingToResume(outside map[string]bool) {
	for _, known := range l.kind.Handlers {
		if known.Verb == cause.Resume && outside[known.ID] {
			l.resumed[known.ID] = true
		}
	}
}

func (l *life) save(plan handler.Plan, r record.Record, seen object.Body) {
	if plan.Cause != cause.Unmatched && (plan.Learns() || plan.Tidied || l.stored == "" && !plan.Unrecorded) {
		text, err := l.kind.Settle(r, seen).Encode()
		if err != nil {
			l.t.Fatal(err)
		}
		if text != l.stored && plan.Cause != cause.Free {
			l.stored = text
			l.writes++
		}
	}
	if plan.Finalizer == handler.Remove || l.marked && l.stored != "" && l.record().Deleted {
		l.marked = false
		l.writes++
	}
}

func describe(run handler.Run, seen object.Body) string {
	text := fmt.Sprintf("%s(%s, %d)", run.ID, run.Reason, run.Attempt)
	if run.MaybeRepeated && run.Attempt == 1 { // A later attempt always repeats.
		text += "?"
	}
	if !run.HasOld {
		return text
	}
	for _, difference := range object.Diff(object.View(run.Old, run.Fields), object.View(seen, run.Fields)) {
		text += fmt.Sprintf(" %s:%v->%v", difference.Path, difference.Old, difference.New)
	}
	return text
}

func (l *life) record() record.Record {
	l.t.Helper()
	var r record.Record
	if err := json.Unmarshal([]byte(l.stored), &r); err != nil {
		l.t.Fatal(err)
	}
	return r
}

// expect makes one reconciliation and compares its cause and runs.
func (l *life) expect(want cause.Cause, runs ...string) {
	l.t.Helper()
	got, made := l.pass()
	if got != want {
		l.t.Errorf("cause %s, want %s", got, want)
	}
	if diff := cmp.Diff(runs, made); diff != "" {
		l.t.Errorf("runs: %s", diff)
	}
}

// restart discards the state that is only in memory.
func (l *life) restart() {
	l.resumed, l.waits, l.levels = map[string]bool{}, map[string]time.Time{}, map[string]record.Entry{}
	l.broken = nil
}

func (l *life) fail(id string, after time.Duration) {
	l.results[id] = handler.Result{Outcome: record.Retry, Delay: after, Message: "no luck"}
}

func (l *life) succeed(id string) { delete(l.results, id) }
