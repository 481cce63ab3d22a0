package engine

import (
	"context"
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// work is what a pass has to write.
type work struct {
	finalizer handler.Finalizer
	outcomes  []outcome
	// rest and status are the users' edits that are not sent yet.
	rest, status []patch.Edit
	// current is the newest essence that was handed out.
	current object.Body
	// record is the newest one of the object with the outcomes folded in.
	record record.Record
	// keepRecord leaves the stored record as it is.
	keepRecord bool
}

// outcome is one attempt, and what it saw and changed.
type outcome struct {
	run    handler.Run
	result handler.Result
	seen   object.Body
	edited bool
	at     time.Time
}

// run makes the planned attempts, each on what the ones before it have left.
func (p *pass) run(ctx context.Context) *work {
	w := &work{
		finalizer: p.plan.Finalizer, record: p.plan.Record,
		keepRecord: p.plan.Cause == cause.Free,
	}
	working := record.Cut(p.body, p.settings.Identity)
	w.current = object.Essence(working, p.fields)
	for _, run := range p.plan.Runs {
		if p.stopping() {
			break
		}
		working = p.attempt(ctx, w, run, working)
		w.current = w.outcomes[len(w.outcomes)-1].seen
	}
	if !w.keepRecord && len(w.outcomes) == 0 {
		// Nothing was learned: what is stored stays, unless it is missing or holds entries that are void.
		w.keepRecord = p.stored != "" && !p.plan.Tidied
	}
	return w
}

// attempt calls one handler and notes what came of it. It returns the object as it is for the next handler.
func (p *pass) attempt(ctx context.Context, w *work, run handler.Run, given object.Body) object.Body {
	essence := object.Essence(given, p.fields)
	call := &Call{Run: run, Given: given, Log: p.log.With("handler", run.ID)}
	if run.HasOld {
		call.Diff = object.DiffFields(run.Old, essence, run.Fields)
	}
	p.tellInvoked(run)
	begun := time.Now()
	err := invoke.Run(ctx, p.settings.Deadline, func(ctx context.Context) error {
		return p.kind.function(run.ID)(ctx, call)
	})
	edits, err := accepted(call, err)
	seen := object.Essence(patch.Apply(given, edits), p.fields)
	result := p.result(run, err)
	p.tellOutcome(run, result, err, time.Since(begun))
	p.remember(run, result)
	rest, status := patch.Split(edits)
	w.rest, w.status = append(w.rest, rest...), append(w.status, status...)
	w.outcomes = append(w.outcomes, outcome{run: run, result: result, seen: seen, edited: len(edits) > 0, at: time.Now()})
	return patch.Apply(given, edits)
}

// accepted returns the edits to write. A panic leaves half-made changes behind, and a handler must not touch what is
// not its own: then there are none.
func accepted(call *Call, err error) ([]patch.Edit, error) {
	if _, panicked := errors.AsType[*invoke.PanicError](err); call.Left == nil || panicked {
		return nil, err
	}
	edits := patch.Edits(call.Given, call.Left)
	if refused := patch.Allowed(edits); refused != nil {
		return nil, errors.Join(err, refused)
	}
	return edits, err
}

func (p *pass) result(run handler.Run, err error) handler.Result {
	verdict := invoke.Classify(err)
	result := handler.Result{Outcome: verdict.Outcome, Delay: verdict.Delay, Asked: verdict.Asked}
	if err != nil {
		result.Message = err.Error()
	}
	if verdict.Outcome == record.Retry && !verdict.Asked {
		result.Delay = handler.Backoff(p.memory.uid, run.ID, run.Attempt)
	}
	return result
}

// remember keeps what the record does not say: how long a wait goes on, and which resume handlers this process is
// done with.
func (p *pass) remember(run handler.Run, result handler.Result) {
	delete(p.memory.waits, run.ID)
	if result.Outcome == record.Waiting {
		p.memory.waits[run.ID] = time.Now().Add(result.Delay)
	}
	if run.Reason == cause.Resume && !result.Outcome.Open() {
		p.memory.resumed[run.ID] = true
	}
}

// fold enters all outcomes into the newest record of the object.
func (w *work) fold(pure handler.Kind, newest record.Record) record.Record {
	if w.finalizer == handler.Add {
		return newest
	}
	for _, o := range w.outcomes {
		newest = pure.Fold(newest, o.run, o.result, o.seen, o.at)
	}
	return pure.Settle(newest, w.current)
}

// refuse turns the outcomes whose changes the API server does not accept into failures, and gives the changes up. It
// tells whether there were any.
func (w *work) refuse(p *pass, reason string) bool {
	if len(w.rest) == 0 && len(w.status) == 0 {
		return false
	}
	w.rest, w.status = nil, nil
	for i, o := range w.outcomes {
		if !o.edited {
			continue
		}
		o.result = handler.Result{
			Outcome: record.Retry, Message: "the API server refused what the handler wrote: " + reason,
			Delay: handler.Backoff(p.memory.uid, o.run.ID, o.run.Attempt),
		}
		p.log.Error("the API server refused what the handler wrote", "handler", o.run.ID, "reason", reason)
		w.outcomes[i] = o
	}
	return true
}
