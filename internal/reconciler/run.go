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

// work is what a pass has to write.
type work struct {
	journal *journal.Journal
	// attempted reports whether a handler ran, or was given up. canceled: an attempt that was planned was not made, since the
	// object has changed meanwhile.
	attempted, canceled bool
	// answered is called with the result of writing what a daemon has handed in; it may be nil.
	answered func(object.Body, error)
	// intends: intents of effects are to be stored, which must not go into a record that another process has written
	// meanwhile.
	intends bool
	// running are the steps of the attempt that goes on; nil for none.
	running *attempt.Steps
	// ended is why nothing more is to be begun: another process has done that, or the object is gone. It is nil otherwise.
	ended error
}

// about is what a journal of the object has to know, of which the first handler gets this form.
func (p *pass) about(given object.Body) journal.Object {
	return journal.Object{UID: p.memory.uid, Given: given, Essence: p.r.essence}
}

// beginWork returns the work of a pass before its first attempt: the plan's finalizer and record, and the handlers that are given up.
func (p *pass) beginWork(working object.Body) *work {
	keepRecord := p.plan.Cause == cause.Free || p.plan.Cause == cause.Unmatched
	if !p.plan.Learns() {
		// What is stored stays, unless it is missing, unusable, in the other carrier, or holds entries that are void.
		keepRecord = keepRecord || !p.plan.Tidied && (p.seen.Record().InPlace() || p.plan.Unrecorded) // mutant: keeps-overwritten-record
	}
	w := &work{journal: journal.New(p.about(working), p.plan.Finalizer, p.plan.Record, keepRecord)}
	for _, given := range p.plan.GivenUp {
		w.attempted = true
		w.journal.Add(journal.Attempt{Run: given.Run, Result: given.Result, Seen: w.journal.Current(), At: time.Now()}, nil)
	}
	return w
}

// run makes the planned attempts. Each one gets what the ones before it have left. It returns an error if another replica has stored a record
// meanwhile, or the object is gone.
func (p *pass) run(ctx context.Context) (*work, error) {
	working := record.Cut(p.seen.Body())
	w := p.beginWork(working)
	for _, run := range p.plan.Runs {
		if p.r.stopping() { // mutant: stop-ignored
			break
		}
		if p.canceled(w, run) {
			continue
		}
		working = p.attempt(ctx, w, run, working) // mutant: record-before-handler
		if w.ended != nil {
			return w, w.ended
		}
	}
	return w, nil
}

// flush saves the outcomes so far, in the middle of a pass.
func (p *pass) flush(ctx context.Context, w *work) error {
	if err := p.save(ctx, w); err != nil {
		return err
	}
	p.plan.Record = w.journal.Stored()
	p.seen = p.seen.WithRecord(p.seen.Record().Saved(p.plan.Record))
	return nil
}

// attempt calls one handler and notes what came of it. It returns the object as it is for the next handler.
func (p *pass) attempt(ctx context.Context, w *work, run handler.Run, given object.Body) object.Body {
	essence := p.r.essence(given)
	mail := attempt.NewMailbox()
	call := attempt.NewCall(run, given, p.report)
	call.Memo, call.Steps, call.Mail = p.r.State.Objects.Memo(p.memory.uid), p.steps(run, mail), mail
	if run.Reason == cause.Reconcile {
		call.TriggeredBy = p.r.State.Objects.TakeTriggers(p.key, run.ID) // mutant: trigger-during-a-run-lost
	}
	if run.HasOld {
		call.Diff = object.DiffFields(run.Old, essence, run.Fields)
	}
	p.r.FirstList.Invoked(p.key)
	p.report.AttemptBegan(run, objects.Names(call.TriggeredBy))
	begun := time.Now()
	w.running = call.Steps
	err := p.invoke(ctx, w, call)
	w.running = nil
	if w.ended != nil {
		return given
	}
	if call.Mail.Overtaken() {
		p.discardAttempt(w, run)
		return given
	}
	reached, err := p.view.Accepted(call, err)
	err = p.r.Reports.RedactError(err, call.Given, call.Left)
	left := patch.Apply(given, p.view.Edits(call.Given, reached))
	result := p.resultOf(run, err)
	rest := call.Steps.Rest()
	result.Steps = rest.Done
	p.report.AttemptEnded(report.Ended{Run: run, Result: result, Err: err, Took: time.Since(begun), Again: p.memory.broken[run.ID]})
	seen := p.r.essence(left)
	w.attempted = true
	p.remember(run, result, seen)
	p.note(w, journal.Attempt{Run: run, Result: result, Seen: seen, At: time.Now(), Changing: rest.Changing}, p.since(rest.Base, call, reached))
	return left
}

// invoke runs the handler. What earlier handlers of the pass and its own steps have done is saved when it takes longer
// than the window.
func (p *pass) invoke(ctx context.Context, w *work, call *attempt.Call) error {
	called := func() error {
		ctx, cancel := p.r.attempting(ctx)
		defer cancel()
		declared := p.r.Kind.Handler(call.ID)
		timeout := cmp.Or(declared.AttemptTimeout, p.r.Settings.AttemptTimeout)
		defer watchOverdue(call.Log, timeout)()
		return invoke.Run(invoke.Named(ctx, call.ID), timeout, func(ctx context.Context) error {
			return declared.Call(ctx, call)
		})
	}
	if len(w.journal.Attempts()) == 0 && call.Steps == nil {
		return called()
	}
	go func() { call.Mail.End(called()) }()
	return p.accompany(ctx, w, call)
}

// accompany saves what is done while a handler goes on, and returns what the handler returns.
func (p *pass) accompany(ctx context.Context, w *work, call *attempt.Call) error {
	window, unsaved := time.NewTimer(p.r.Settings.Window), w.journal.Attempts()
	defer window.Stop()
	open := len(unsaved) > 0
	if open {
		window.Reset(p.r.Settings.Window - time.Since(unsaved[0].At))
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
				p.declare(ctx, w, call)
			}
			if arrived.Stepped && !open {
				window.Reset(p.r.Settings.Window)
				open = true
			}
		case <-window.C:
			open = false
			_ = p.saveMeanwhile(ctx, w, call) // The failure is logged, and the write is retried.
		}
	}
	call.Mail.Close(w.ended)
	return call.Mail.AwaitEnd()
}

// remember keeps what the record does not say: how long a wait goes on, which handlers have a programming error, which resume handlers this
// process is done with, and how level-triggered ones and timers stand.
func (p *pass) remember(run handler.Run, result handler.Result, seen object.Body) {
	delete(p.memory.waits, run.ID)
	if delete(p.memory.broken, run.ID); result.Broken {
		p.memory.broken[run.ID] = true // mutant: programming-error-retried
	}
	switch run.Reason { //nolint:exhaustive // The others have a record.
	case cause.Reconcile:
		p.memory.levels[run.ID] = p.view.Pure.FoldLevel(p.memory.uid, run, result, seen, time.Now())
		return
	case cause.Timer:
		p.memory.clocks[run.ID] = p.view.Pure.FoldTimer(p.memory.uid, p.memory.clocks[run.ID], handler.Ended{
			Run: run, Result: result, Seen: seen, At: time.Now(),
		})
		return
	}
	if result.Outcome == record.Waiting {
		p.memory.waits[run.ID] = time.Now().Add(result.Delay)
	}
	if run.Reason == cause.Resume && !result.Outcome.Open() {
		p.memory.resumed[run.ID] = true
	}
}
