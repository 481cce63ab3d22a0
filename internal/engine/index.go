package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// indexer keeps an index up to date.
type indexer struct {
	index    declaration.Index
	settings declaration.Settings
	fields   []object.Path
	meter    *metrics.Index
	log      *slog.Logger
	// turn is held by the goroutine that changes the index, for an event or a retry. A channel, since the author's function runs meanwhile.
	turn    chan struct{}
	pending map[types.NamespacedName]*computation
}

// computation is one that failed, and will be made again.
type computation struct {
	of    client.Object
	n     int
	first time.Time
	again *time.Timer
}

func newIndexer(o *Operator, index declaration.Index) *indexer {
	return &indexer{
		index: index, settings: o.Settings, turn: make(chan struct{}, 1), pending: map[types.NamespacedName]*computation{},
		fields: handler.Kind{Handlers: []handler.Declaration{index.Declaration}}.StatusFields(),
		meter:  o.Metrics.Index(o.Settings.Identity, index.GVK.GroupKind().String(), index.ID),
		log:    o.Settings.Log.With("kind", index.GVK.Kind, "index", index.ID),
	}
}

// changed brings the index up to date with an event.
func (x *indexer) changed(ctx context.Context, delivered change) {
	x.turn <- struct{}{}
	defer func() { <-x.turn }()
	if delivered.before != nil && (delivered.after == nil || delivered.after.GetUID() != delivered.before.GetUID()) {
		x.leave(client.ObjectKeyFromObject(delivered.before))
	}
	if delivered.after != nil {
		key := client.ObjectKeyFromObject(delivered.after)
		if x.settings.Serves(key.Namespace) {
			x.forgetAttempt(key)
			x.enter(ctx, computation{of: delivered.after, n: 1, first: time.Now()})
		}
	}
	x.meter.Holds(x.index.Size())
}

// leave takes an object out of the index.
func (x *indexer) leave(key types.NamespacedName) {
	x.forgetAttempt(key)
	x.index.Remove(key)
}

// clear takes objects out of the index.
func (x *indexer) clear(known []types.NamespacedName) {
	x.turn <- struct{}{}
	defer func() { <-x.turn }()
	for _, key := range known {
		x.leave(key)
	}
	x.meter.Holds(x.index.Size())
}

func (x *indexer) forgetAttempt(key types.NamespacedName) {
	if waiting, has := x.pending[key]; has {
		waiting.again.Stop()
		delete(x.pending, key)
	}
}

// enter puts an object into the index, if it belongs there. What fails is kept as it was, or taken out for good or until the
// next attempt, as its error and the options say.
func (x *indexer) enter(ctx context.Context, a computation) {
	key := client.ObjectKeyFromObject(a.of)
	var put func()
	err := invoke.Guard(func() error {
		concerned, err := x.concerned(a.of)
		if err != nil {
			return err
		}
		if put = func() { x.index.Remove(key) }; concerned {
			put, err = x.index.Compute(a.of)
		}
		return err
	})
	if err == nil {
		put()
		return
	}
	x.meter.Failed()
	verdict := invoke.Classify(err)
	run := handler.Run{Declaration: x.index.Declaration, Attempt: a.n, Started: a.first}
	result := run.Judge(string(a.of.GetUID()), handler.Result{Outcome: verdict.Outcome, Delay: verdict.Delay, Asked: verdict.Asked}, time.Now())
	x.tell(key, a, result, err)
	if result.Ignored {
		return
	}
	x.index.Remove(key)
	if result.Outcome == record.Retry || result.Outcome == record.Waiting {
		x.later(ctx, key, a, result.Delay)
	}
}

// later makes another attempt after a while, unless the object changes before.
func (x *indexer) later(ctx context.Context, key types.NamespacedName, a computation, delay time.Duration) {
	next := &computation{of: a.of, n: a.n + 1, first: a.first}
	x.pending[key] = next
	next.again = time.AfterFunc(delay, func() {
		x.turn <- struct{}{}
		defer func() { <-x.turn }()
		if ctx.Err() != nil || x.pending[key] != next {
			return
		}
		delete(x.pending, key)
		x.enter(ctx, *next)
		x.meter.Holds(x.index.Size())
	})
}

// concerned asks the filters.
func (x *indexer) concerned(of client.Object) (bool, error) {
	if x.index.Scope == nil {
		return true, nil
	}
	body, err := x.index.Body(of)
	if err != nil {
		return false, err
	}
	return x.index.Concerns(handler.State{
		Namespace: of.GetNamespace(), Name: of.GetName(), UID: string(of.GetUID()),
		Essence: object.Essence(body, x.settings.Identity, x.fields),
	})
}

func (x *indexer) tell(key types.NamespacedName, a computation, result handler.Result, err error) {
	log := x.log.With("object", key.String(), "attempt", a.n)
	if panicked, is := errors.AsType[*invoke.PanicError](err); is {
		log = log.With("stack", string(panicked.Stack))
	}
	if panicked, is := errors.AsType[*filter.PanicError](err); is {
		log = log.With("stack", string(panicked.Stack))
	}
	text := redact.New().Text(err.Error())
	switch {
	case result.Ignored:
		log.Warn("index function failed, error ignored, previous entries of the object kept", "error", text)
	case result.Outcome == record.Failed:
		log.Error("index function failed permanently, object not indexed until it changes", "error", text, "gaveUp", result.GaveUp)
	case result.Outcome == record.Waiting:
		log.Debug("object not indexed yet", "retryIn", result.Delay.String())
	default:
		log.Error("index function failed, object not indexed, will retry", "error", text, "retryIn", result.Delay.Round(time.Millisecond).String())
	}
}
