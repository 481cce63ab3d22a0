package reconciler

import (
	"cmp"
	"context"
	"time"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
)

// caller calls the handlers that are due.
type caller struct {
	s         *subject
	committer committer
}

// run makes the planned attempts. Each one gets what the ones before it have left. It returns an error if another replica has stored a record
// meanwhile, or the object is gone.
func (a caller) run(ctx context.Context) (*work, error) {
	working := record.Cut(a.s.seen.Body())
	w := a.beginWork(working)
	for _, run := range a.s.plan.Runs {
		if a.s.r.stopping() { // mutant: stop-ignored
			break
		}
		if a.canceled(w, run) {
			continue
		}
		working = a.attempt(ctx, w, run, working) // mutant: record-before-handler
		if w.ended != nil {
			return w, w.ended
		}
	}
	return w, nil
}

// beginWork returns the work of a reconciliation before its first attempt: the plan's finalizer and record, and the handlers that are given up.
func (a caller) beginWork(working object.Body) *work {
	keepRecord := a.s.plan.Cause == cause.Free || a.s.plan.Cause == cause.Unmatched
	if !a.s.plan.Learns() {
		// What is stored stays, unless it is missing, unusable, in the other carrier, or holds entries that are void.
		keepRecord = keepRecord || !a.s.plan.Tidied && (a.s.seen.Record().InPlace() || a.s.plan.Unrecorded) // mutant: keeps-overwritten-record
	}
	w := &work{journal: journal.New(a.s.about(working), a.s.plan.Finalizer, a.s.plan.Record, keepRecord)}
	for _, given := range a.s.plan.GivenUp {
		w.attempted = true
		w.journal.Add(journal.Attempt{Run: given.Run, Result: given.Result, Seen: w.journal.Current(), At: time.Now()}, nil)
	}
	return w
}

// canceled reports whether an attempt that was planned is not made any more: what was saved meanwhile has shown that the object
// is being deleted, or that it no longer matches the handler's filters. What is next is decided by the next reconciliation.
func (a caller) canceled(w *work, run handler.Run) bool {
	if !a.s.seen.IsLive() || a.s.seen.Version() == a.s.planned || run.Reason == cause.Delete {
		return false
	}
	body, err := a.s.r.Kind.Canonical(a.s.seen.Raw())
	if err != nil {
		return false // The next reconciliation reports it.
	}
	deleting := object.Text(body, "metadata", "deletionTimestamp") != "" && !run.AlsoDeleting
	matches, err := run.Concerns(handler.State{
		Namespace: a.s.key.Namespace, Name: a.s.key.Name, UID: a.s.memory.uid, Essence: a.s.r.essence(body),
	})
	if !deleting && (matches || err != nil) {
		return false
	}
	a.s.report.Log.Info("handler not invoked, the object has changed", "handler", run.ID, "reason", run.Reason, "deleting", deleting)
	w.canceled = true
	return true // mutant: runs-after-deletion
}

// attempt calls one handler and notes what came of it. It returns the object as it is for the next handler.
func (a caller) attempt(ctx context.Context, w *work, run handler.Run, given object.Body) object.Body {
	essence := a.s.r.essence(given)
	mail := attempt.NewMailbox()
	call := attempt.NewCall(run, given, a.s.report)
	call.Memo, call.Steps, call.Mail = a.s.r.State.Objects.Memo(a.s.memory.uid), a.steps(run, mail), mail
	if run.Reason == cause.Reconcile {
		call.TriggeredBy = a.s.r.State.Objects.TakeTriggers(a.s.key, run.ID) // mutant: trigger-during-a-run-lost
	}
	if run.HasOld {
		call.Diff = object.DiffFields(run.Old, essence, run.Fields)
	}
	a.s.r.FirstList.Invoked(a.s.key)
	a.s.report.AttemptBegan(run, objects.Names(call.TriggeredBy))
	begun := time.Now()
	w.running = call.Steps
	err := a.invoke(ctx, w, call)
	w.running = nil
	if w.ended != nil {
		return given
	}
	if call.Mail.Overtaken() {
		a.discardAttempt(w, run)
		return given
	}
	reached, err := a.s.view.Accepted(call, err)
	err = a.s.r.Reports.RedactError(err, call.Given, call.Left)
	left := patch.Apply(given, a.s.view.Edits(call.Given, reached))
	result := a.resultOf(run, err)
	rest := call.Steps.Rest()
	result.Steps = rest.Done
	a.s.report.AttemptEnded(report.Ended{Run: run, Result: result, Err: err, Took: time.Since(begun), Again: a.s.memory.broken[run.ID]})
	seen := a.s.r.essence(left)
	w.attempted = true
	a.s.remember(run, result, seen)
	a.note(w, journal.Attempt{Run: run, Result: result, Seen: seen, At: time.Now(), Changing: rest.Changing}, a.since(rest.Base, call, reached))
	return left
}

// invoke runs the handler. What earlier handlers of the reconciliation and its own steps have done is saved when it takes longer
// than the window.
func (a caller) invoke(ctx context.Context, w *work, call *attempt.Call) error {
	called := func() error {
		ctx, cancel := a.s.r.attempting(ctx)
		defer cancel()
		declared := a.s.r.Kind.Handler(call.ID)
		timeout := cmp.Or(declared.AttemptTimeout, a.s.r.Settings.AttemptTimeout)
		defer watchOverdue(call.Log, timeout)()
		return invoke.Run(invoke.Named(ctx, call.ID), timeout, func(ctx context.Context) error {
			return declared.Call(ctx, call)
		})
	}
	if len(w.journal.Attempts()) == 0 && call.Steps == nil {
		return called()
	}
	go func() { call.Mail.End(called()) }()
	return a.accompany(ctx, w, call)
}

// accompany saves what is done while a handler goes on, and returns what the handler returns.
func (a caller) accompany(ctx context.Context, w *work, call *attempt.Call) error {
	window, unsaved := time.NewTimer(a.s.r.Settings.Window), w.journal.Attempts()
	defer window.Stop()
	open := len(unsaved) > 0
	if open {
		window.Reset(a.s.r.Settings.Window - time.Since(unsaved[0].At))
	} else {
		window.Stop()
	}
	for w.ended == nil {
		select {
		case <-call.Mail.Arrived:
			arrived := call.Mail.Take()
			if arrived.Ended {
				return arrived.Err
			}
			if arrived.Declared {
				a.declare(ctx, w, call)
			}
			if arrived.Stepped && !open {
				window.Reset(a.s.r.Settings.Window)
				open = true
			}
		case <-window.C:
			open = false
			_ = a.saveMeanwhile(ctx, w, call) // The failure is logged, and the write is retried.
		}
	}
	call.Mail.Close(w.ended)
	return call.Mail.AwaitEnd()
}

// resultOf is what counts of an attempt that has ended.
func (a caller) resultOf(run handler.Run, err error) handler.Result {
	if a.s.r.interrupted(run, err) {
		return handler.Result{Outcome: record.Pending}
	}
	return attempt.Judge(run, a.s.memory.uid, err)
}
