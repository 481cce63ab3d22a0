package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// What people see of a daemon that does not end.
const (
	failedDaemonSentence = "daemon %s failed permanently and is not restarted until the operator restarts: %v"
	abandonedReason      = "DaemonAbandoned"
	abandonedSentence    = "daemon %s has not returned %s after its context was cancelled. Einmal no longer waits for it, but it may still be running"
)

// daemon is one daemon of one object.
type daemon struct {
	keeper  *keeper
	handler Handler
	key     types.NamespacedName
	uid     string
	memo    *sync.Map
	// began is the object as it was when the daemon was started.
	began  object.Body
	ctx    context.Context //nolint:containedctx // It is the daemon's life.
	cancel context.CancelCauseFunc
	// stopping is closed when the daemon is to stop, left when it has returned or is abandoned.
	stopping, left chan struct{}

	// These belong to daemons, under its lock.
	stopped, ended, abandoned bool
	stages                    []*time.Timer

	// These belong to its goroutine: the next attempt, and the newest object that it has seen.
	run    handler.Run
	newest object.Body
}

// live makes one attempt after the other.
func (d *daemon) live() {
	for again := true; again; {
		var wait time.Duration
		if wait, again = d.attempt(); again {
			again = d.rest(wait)
		}
	}
	d.keeper.daemons.end(d)
	d.cancel(nil)
	d.keeper.wake(d.key) // A deletion may wait for it, or another daemon in its place.
}

// rest waits for the next attempt. It is false when there is none.
func (d *daemon) rest(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.stopping:
		return false
	}
}

// attempt calls the handler once. It tells how long to wait for the next attempt, if there is one.
func (d *daemon) attempt() (time.Duration, bool) {
	d.look()
	p := d.pass()
	call := &Call{Run: d.run, Given: record.Cut(d.newest), Memo: func() *sync.Map { return d.memo }, Stopping: d.stopping}
	call.Sync = func(ctx context.Context, left object.Body) (object.Body, error) { return d.sync(ctx, p, call, left) }
	p.equip(call, p.log)
	p.tellInvoked(d.run, nil)
	p.reportAttempt(d.run, "")
	begun := time.Now()
	err := invoke.Guard(func() error { return d.handler.Call(invoke.Named(d.ctx, d.run.ID), call) })
	left, err := p.accepted(call, err)
	err = p.redacted(err, call.Given, call.Left)
	d.leave(p, p.edits(call.Given, left))
	took, run := time.Since(begun), d.run.Lasted(begun, time.Now())
	result := d.result(p, run, err)
	d.tellEnd(p, result, err, took)
	p.count(run, result.Outcome, took)
	p.reportAttempt(run, result.Outcome)
	next, again := run.After(result)
	d.run = next
	return result.Delay, again
}

// leave hands in what an attempt has changed.
func (d *daemon) leave(p *pass, edits []patch.Edit) {
	if len(edits) == 0 {
		return
	}
	if !d.keeper.daemons.hand(d, handedIn{run: d.run, edits: edits}) {
		p.log.Warn("changes of an abandoned daemon discarded", "handler", d.run.ID)
		return
	}
	d.keeper.wake(d.key)
}

// result is what the end of an attempt means. A daemon that was asked to stop has succeeded, whatever error it returns because of that.
func (d *daemon) result(p *pass, run handler.Run, err error) handler.Result {
	if d.stopRequested() && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, d.why())) {
		return handler.Result{Outcome: record.Done}
	}
	result := p.result(run, err)
	if d.stopRequested() && result.Outcome.Open() {
		result.Outcome = record.Failed
	}
	return result
}

// stopRequested reports whether the daemon was asked to stop.
func (d *daemon) stopRequested() bool {
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}

// why tells why its context has ended.
func (d *daemon) why() error { return context.Cause(d.ctx) }

// pass is what the daemon speaks with. It shares nothing with the passes of its object.
func (d *daemon) pass() *pass {
	return &pass{
		keeper: d.keeper, shape: d.keeper.shapes.now(), key: d.key, body: d.newest, memory: &memory{uid: d.uid},
		log: d.keeper.log.With(append([]any{"object", d.key.String()}, generation(d.newest)...)...),
	}
}

// look reads the newest object from the cache. What is older than what the daemon knows already is not looked at.
func (d *daemon) look() {
	cached := d.keeper.kind.New()
	if err := d.keeper.cache.Get(d.ctx, d.key, cached); err != nil || string(cached.GetUID()) != d.uid ||
		kube.Older(cached.GetResourceVersion(), version(d.newest)) {
		return
	}
	if body, err := d.keeper.kind.Body(cached); err == nil {
		d.newest = body
	}
}

// sync writes what the daemon has changed, and gives it the newest object.
func (d *daemon) sync(ctx context.Context, p *pass, call *Call, left object.Body) (object.Body, error) {
	if err := p.refused(call.ID, call.Given, left); err != nil {
		return nil, err
	}
	if err := d.ctx.Err(); err != nil {
		return nil, d.why()
	}
	edits := p.edits(call.Given, left)
	if len(edits) == 0 {
		d.look()
		return record.Cut(d.newest), nil
	}
	type written struct {
		body object.Body
		err  error
	}
	done := make(chan written, 1)
	d.keeper.daemons.hand(d, handedIn{run: d.run, edits: edits, answer: func(body object.Body, err error) {
		done <- written{body, err}
	}})
	d.keeper.wake(d.key)
	select {
	case answer := <-done:
		return d.settle(answer.body, answer.err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.ctx.Done():
		return nil, d.why()
	case <-d.keeper.stop:
		return nil, d.keeper.whyOver()
	}
}

// settle takes what the API server has answered.
func (d *daemon) settle(answer object.Body, err error) (object.Body, error) {
	if err != nil {
		return nil, err
	}
	body, err := d.keeper.kind.Canonical(answer)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", d.key, err)
	}
	d.newest = body
	d.look()
	return record.Cut(d.newest), nil
}

// abandon ends the waiting for the daemon.
func (d *daemon) abandon() {
	if !d.keeper.daemons.abandon(d) {
		return
	}
	after := d.handler.Abandon.String()
	p := &pass{keeper: d.keeper, shape: d.keeper.shapes.now(), key: d.key, body: d.began, memory: &memory{uid: d.uid}}
	d.log().Warn("daemon abandoned, it has not returned after its context was cancelled", "after", after)
	p.warn(abandonedReason, abandonedSentence, d.handler.ID, after)
	d.keeper.wake(d.key)
}

func (d *daemon) log() *slog.Logger {
	return d.keeper.log.With("object", d.key.String(), "handler", d.handler.ID)
}

// tellEnd tells how an attempt has ended.
func (d *daemon) tellEnd(p *pass, result handler.Result, err error, took time.Duration) {
	log := p.log.With("handler", d.run.ID, "reason", d.run.Reason, "attempt", d.run.Attempt, "took", took.Round(time.Millisecond).String())
	switch {
	case d.stopRequested() && result.Outcome == record.Done:
		log.Info("daemon stopped")
	case d.stopRequested():
		log.Error("daemon stopped with an error", "error", err)
	case result.Broken:
		p.tellBroken(d.run, log, err)
	case result.Outcome == record.Done && !result.Ignored:
		log.Info("daemon returned, will start again when the operator restarts")
	case result.Outcome == record.Failed:
		if result.GaveUp != "" {
			log = log.With("gaveUp", result.GaveUp)
		}
		log.Error("daemon failed permanently, will start again when the operator restarts", "error", err)
		p.warn(failedReason, failedDaemonSentence, d.run.ID, err)
	default:
		p.tellOutcome(d.run, result, err, took)
	}
}
