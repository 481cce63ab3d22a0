package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/report"
)

// work is what a pass has to write.
type work struct {
	finalizer handler.Finalizer
	// marks is set of work that only adds the finalizer, and writes a lost record again with the same request.
	marks    bool
	outcomes []outcome
	// rest and status are the users' edits that are not sent yet.
	rest, status []patch.Edit
	// touched are the fields that handlers have set.
	touched []touched
	// written is the object as the handlers were given it, with those of their edits that are sent.
	written object.Body
	// attempted reports whether a handler ran, or was given up. canceled: an attempt that was planned was not made, since the
	// object has changed meanwhile.
	attempted, canceled bool
	// current is the newest essence that was handed out.
	current object.Body
	// record is the newest one of the object with the outcomes folded in.
	record record.Record
	// keepRecord leaves the stored record as it is. reduction is how much of the one that is written is left out.
	keepRecord bool
	// marksConditions: the last document had conditions of the framework. withoutConditions leaves them out.
	marksConditions, withoutConditions bool
	reduction                          handler.Reduction
	// answered is called with the result of writing what a daemon has handed in; it may be nil. The refusal is the error of the API server.
	answered func(object.Body, error)
	refusal  error
	// intends: intents of effects are to be stored, which must not go into a record that another process has written
	// meanwhile; sent is the text of the record that was sent last.
	intends bool
	sent    string
	// ended is why nothing more is to be begun: another process has done that, or the object is gone. It is nil otherwise.
	ended error
}

// outcome is one attempt, and what it saw and changed.
type outcome struct {
	run    handler.Run
	result handler.Result
	seen   object.Body
	edited bool
	at     time.Time
	// steps are those of the attempt; nil for a handler without a record.
	steps *Steps
}

// beginWork returns the work of a pass before its first attempt: the plan's finalizer and record, and the handlers that are given up.
func (p *pass) beginWork(working object.Body) *work {
	w := &work{
		finalizer: p.plan.Finalizer, record: p.plan.Record,
		keepRecord: p.plan.Cause == cause.Free || p.plan.Cause == cause.Unmatched,
	}
	if !p.plan.Learns() {
		// What is stored stays, unless it is missing, unusable, in the other carrier, or holds entries that are void.
		w.keepRecord = w.keepRecord || !p.plan.Tidied && (p.inPlace || p.plan.Unrecorded) // mutant: keeps-overwritten-record
	}
	w.current, w.written = p.essence(working), working
	for _, given := range p.plan.GivenUp {
		w.attempted = true
		w.outcomes = append(w.outcomes, outcome{run: given.Run, result: given.Result, seen: w.current, at: time.Now()})
	}
	return w
}

// run makes the planned attempts. Each one gets what the ones before it have left. It returns an error if another replica has stored a record
// meanwhile, or the object is gone.
func (p *pass) run(ctx context.Context) (*work, error) {
	working := record.Cut(p.body)
	w := p.beginWork(working)
	for _, run := range p.plan.Runs {
		if p.stopping() { // mutant: stop-ignored
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
	saved := w.record
	p.plan.Record, p.record, w.outcomes = saved, &saved, nil
	return nil
}

// equip gives an attempt its log and its events. Both redact with the object as it is given, which the call replaces while they may be in use.
func equip(call *Call, about report.Object) {
	call.Log, call.Say = about.HandlerLog(call.Run, call.Given), about.EventFunc(call.Given)
}

// attempt calls one handler and notes what came of it. It returns the object as it is for the next handler.
func (p *pass) attempt(ctx context.Context, w *work, run handler.Run, given object.Body) object.Body {
	essence := p.essence(given)
	call := &Call{Run: run, Given: given, Memo: p.memos.of(p.memory.uid), Steps: p.steps(run)}
	equip(call, p.report)
	if run.Reason == cause.Reconcile {
		call.TriggeredBy = p.pendingTriggers.take(p.key, run.ID) // mutant: trigger-during-a-run-lost
	}
	if run.HasOld {
		call.Diff = object.DiffFields(run.Old, essence, run.Fields)
	}
	p.startup.invoked(p.key)
	p.report.AttemptBegan(run, names(call.TriggeredBy))
	begun := time.Now()
	err := p.invoke(ctx, w, call)
	if w.ended != nil {
		return given
	}
	if call.Steps.isOvertaken() {
		p.discardAttempt(w, run)
		return given
	}
	reached, err := p.accepted(call, err)
	err = p.reports.RedactError(err, call.Given, call.Left)
	left := patch.Apply(given, p.edits(call.Given, reached))
	result := p.resultOf(run, err)
	result.Steps = call.Steps.finished()
	p.report.AttemptEnded(report.Ended{Run: run, Result: result, Err: err, Took: time.Since(begun), Again: p.memory.broken[run.ID]})
	w.current, w.attempted = p.essence(left), true
	p.remember(run, result, w.current)
	p.note(w, outcome{run: run, result: result, seen: w.current, at: time.Now(), steps: call.Steps}, p.unsent(call, reached))
	return left
}

// invoke runs the handler. What earlier handlers of the pass and its own steps have done is saved when it takes longer
// than the window.
func (p *pass) invoke(ctx context.Context, w *work, call *Call) error {
	attempt := func() error {
		ctx, cancel := p.attempting(ctx)
		defer cancel()
		declared := p.kind.handler(call.ID)
		timeout := cmp.Or(declared.AttemptTimeout, p.settings.AttemptTimeout)
		defer watchOverdue(call.Log, timeout)()
		return invoke.Run(invoke.Named(ctx, call.ID), timeout, func(ctx context.Context) error {
			return declared.Call(ctx, call)
		})
	}
	if len(w.outcomes) == 0 && call.Steps == nil {
		return attempt()
	}
	ended := make(chan error, 1)
	go func() { ended <- attempt() }()
	window, open := time.NewTimer(p.settings.Window), len(w.outcomes) > 0
	defer window.Stop()
	if open {
		window.Reset(p.settings.Window - time.Since(w.outcomes[0].at))
	} else {
		window.Stop()
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-call.Steps.intended():
			p.declare(ctx, w, call)
		case <-call.Steps.ended():
			if !open {
				window.Reset(p.settings.Window)
				open = true
			}
		case <-window.C:
			open = false
			_ = p.saveMeanwhile(ctx, w, call) // The failure is logged, and the write is retried.
		}
		if w.ended != nil {
			call.Steps.close(w.ended)
			return <-ended
		}
	}
}

// accepted returns what the handler made of the object, as far as it is to be written; nil for nothing of it. A panic
// leaves half-made changes behind, and a handler must not touch what is not its own: then it is what the last step left.
func (s *shape) accepted(call *Call, err error) (object.Body, error) {
	_, panicked := errors.AsType[*invoke.PanicError](err)
	if call.Left == nil || panicked {
		return call.Steps.reached(), err
	}
	if refused := s.refused(call.ID, call.Given, call.Left); refused != nil {
		return call.Steps.reached(), errors.Join(err, refused)
	}
	return call.Left, err
}

// judge returns what counts of an attempt of a handler for the object with a uid, by the error that it has returned.
func judge(run handler.Run, uid string, err error) handler.Result {
	verdict := invoke.Classify(err)
	bare := handler.Result{Outcome: verdict.Outcome, Delay: verdict.Delay, Asked: verdict.Asked, Broken: verdict.Broken}
	if err != nil {
		bare.Message = err.Error()
	}
	return run.Judge(uid, bare, time.Now())
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
		p.memory.levels[run.ID] = p.pure.FoldLevel(p.memory.uid, run, result, seen, time.Now())
		return
	case cause.Timer:
		p.memory.clocks[run.ID] = p.pure.FoldTimer(p.memory.uid, p.memory.clocks[run.ID], handler.Ended{
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

// fold enters all outcomes into the newest record of the object.
func (w *work) fold(pure handler.Kind, newest record.Record) record.Record {
	if w.marks {
		return newest
	}
	for _, o := range w.outcomes {
		newest = pure.Fold(newest, o.run, o.result, o.seen, o.at)
	}
	return pure.Settle(newest, w.current)
}

// refuse turns the outcomes whose changes the API server does not accept into failures, and gives the changes up. It
// reports whether there were any.
func (w *work) refuse(p *pass, refusal error) bool {
	if len(w.rest) == 0 && len(w.status) == 0 {
		return false
	}
	w.rest, w.status = nil, nil
	w.refusal = fmt.Errorf("the API server rejected the changes of the handler: %s", p.reports.Redact(kube.Refusal(refusal), p.body))
	w.current = p.essence(w.written) // What is given up was not there, or it would seem to be taken back: a change to be seen.
	reason := p.reports.Redact(kube.Refusal(refusal), p.body)
	for i, o := range w.outcomes {
		if o.seen = w.current; o.edited {
			o = o.refused(p, refusal, reason)
		}
		w.outcomes[i] = o
	}
	return true
}

// refused is what becomes of an attempt whose changes the API server does not accept.
func (o outcome) refused(p *pass, refusal error, reason string) outcome {
	o, over := o.takenBack(p, handler.Result{
		Outcome: record.Retry, Message: "the API server rejected the changes of the handler: " + reason, Refused: !kube.Denied(refusal),
	})
	if over {
		p.report.ChangesRejected(o.run, o.result, reason)
	}
	return o
}

// takenBack is an attempt whose changes are not written, with another result. It returns false if the attempt goes on; then the handler
// learns of it at its end.
func (o outcome) takenBack(p *pass, bare handler.Result) (outcome, bool) {
	o.steps.takeBack()
	done := o.steps.finished()
	if o.result.Outcome == record.Pending {
		o.result.Steps, o.edited = done, false
		return o, false
	}
	bare.Broken, bare.Steps = o.result.Broken, done
	o.result = o.run.Judge(p.memory.uid, bare, time.Now())
	delete(p.memory.resumed, o.run.ID)
	p.remember(o.run, o.result, o.seen)
	return o, true
}
