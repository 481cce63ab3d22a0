package daemons

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// cacheTimeout is how long the cache may show an older object than the daemon knows before the API server is asked.
const cacheTimeout = 5 * time.Second

// state is how far a daemon is.
type state int

const (
	// running: it was not asked to stop.
	running state = iota
	// stopping: it was asked to stop, and has not returned.
	stopping
	// abandoned: it was asked to stop, has not returned, and nothing waits for it any more.
	abandoned
	// ended: it has returned.
	ended
)

// daemon is one daemon of one object.
type daemon struct {
	all     *Daemons
	options Options
	handler declaration.Handler
	key     types.NamespacedName
	uid     string
	memo    *sync.Map
	// began is the object as it was when the daemon was started.
	began  object.Body
	ctx    context.Context //nolint:containedctx // It is the daemon's life.
	cancel context.CancelCauseFunc
	// stopping is closed when the daemon is to stop, left when it has returned or is abandoned.
	stopping, left chan struct{}

	// The lock of all guards these.
	state  state
	stages []*time.Timer

	// These belong to its goroutine: the next attempt, and the newest object that it has seen, and when.
	run    handler.Run
	newest object.Body
	known  time.Time
}

// live makes one attempt after the other.
func (d *daemon) live() {
	for again := true; again; {
		var wait time.Duration
		if wait, again = d.attempt(); again {
			again = d.rest(wait)
		}
	}
	d.all.end(d)
	d.cancel(nil)
	d.options.Wake(d.key) // A deletion may wait for it, or another daemon in its place.
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

// attempt calls the handler once. It returns how long to wait for the next attempt, and whether there is one.
func (d *daemon) attempt() (time.Duration, bool) {
	d.look()
	view, about := d.options.Views.Now(), d.options.Reports.About(d.key, d.newest)
	call := attempt.NewCall(d.run, record.Cut(d.newest), about)
	call.Memo, call.Stopping = func() *sync.Map { return d.memo }, d.stopping
	call.Sync = func(ctx context.Context, left object.Body) (object.Body, error) {
		return d.sync(ctx, view, call, left)
	}
	d.options.Invoked(d.key)
	about.AttemptBegan(d.run, "")
	begun := time.Now()
	err := invoke.Guard(func() error { return d.handler.Call(invoke.Named(d.ctx, d.run.ID), call) })
	left, err := view.Accepted(call, err)
	err = d.options.Reports.RedactError(err, call.Given, call.Left)
	d.leave(about, view.Edits(call.Given, left))
	run := d.run.Lasted(begun, time.Now())
	ended := report.Ended{Run: run, Result: d.result(run, err), Err: err, Took: time.Since(begun)}
	if d.stopRequested() {
		about.DaemonStopped(ended)
	} else {
		about.DaemonEnded(ended)
	}
	next, again := run.After(ended.Result)
	d.run = next
	return ended.Result.Delay, again
}

// leave hands in what an attempt has changed.
func (d *daemon) leave(about report.Object, edits []patch.Edit) {
	if len(edits) == 0 {
		return
	}
	if !d.all.submit(d, objects.Edits{Run: d.run, Edits: edits}) {
		about.Log.Warn("changes of an abandoned daemon discarded", "handler", d.run.ID)
		return
	}
	d.options.Wake(d.key)
}

// result is what the end of an attempt means. A daemon that was asked to stop has succeeded, whatever error it returns because of that.
func (d *daemon) result(run handler.Run, err error) handler.Result {
	if d.stopRequested() && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, d.why())) {
		return handler.Result{Outcome: record.Done}
	}
	result := attempt.Judge(run, d.uid, err)
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

// look reads the newest object from the cache. What is older than what the daemon knows already is not looked at. If that lasts, the API server itself may
// have an older object, because its etcd was restored, so it is asked.
func (d *daemon) look() {
	cached := d.options.Kind.New()
	if err := d.options.Cache.Get(d.ctx, d.key, cached); err != nil || string(cached.GetUID()) != d.uid {
		return
	}
	body, err := d.options.Kind.Body(cached)
	if kube.Older(cached.GetResourceVersion(), seen.Version(d.newest)) {
		if time.Since(d.known) < cacheTimeout {
			return
		}
		body, err = d.lookLive() // mutant: daemon-after-restore
	}
	if err == nil {
		d.newest, d.known = body, time.Now()
	}
}

// lookLive reads the object from the API server.
func (d *daemon) lookLive() (object.Body, error) {
	live, err := d.options.Server.Get(d.ctx, d.key)
	switch {
	case err != nil:
		return nil, err
	case object.Text(live, "metadata", "uid") != d.uid:
		return nil, ErrObjectGone
	}
	return d.options.Kind.Canonical(live)
}

// sync writes what the daemon has changed, and gives it the newest object.
func (d *daemon) sync(ctx context.Context, view *schemaview.View, call *attempt.Call, left object.Body) (object.Body, error) {
	if err := view.Refused(call.ID, call.Given, left); err != nil {
		return nil, err
	}
	if err := d.ctx.Err(); err != nil {
		return nil, d.why()
	}
	edits := view.Edits(call.Given, left)
	if len(edits) == 0 {
		d.look()
		return record.Cut(d.newest), nil
	}
	type written struct {
		body object.Body
		err  error
	}
	done := make(chan written, 1)
	d.all.submit(d, objects.Edits{Run: d.run, Edits: edits, Answer: func(body object.Body, err error) {
		done <- written{body, err}
	}})
	d.options.Wake(d.key)
	select {
	case answer := <-done:
		return d.settle(answer.body, answer.err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.ctx.Done():
		return nil, d.why()
	case <-d.options.Stop:
		return nil, d.options.Why()
	}
}

// settle takes what the API server has answered.
func (d *daemon) settle(answer object.Body, err error) (object.Body, error) {
	if err != nil {
		return nil, err
	}
	body, err := d.options.Kind.Canonical(answer)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", d.key, err)
	}
	d.newest, d.known = body, time.Now()
	d.look()
	return record.Cut(d.newest), nil
}
