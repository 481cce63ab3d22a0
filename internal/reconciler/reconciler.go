package reconciler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// decodable reports whether the Go type of the kind can hold an object.
func (r *Reconciler) decodable(raw object.Body) bool {
	return kube.Undecodable(raw, r.Kind.New()) == nil
}

// canonical returns the object as the Go type of the kind writes it. The conversion itself would cut numbers that the Go type cannot hold.
func (r *Reconciler) canonical(raw object.Body) (object.Body, error) {
	body, err := r.Kind.Canonical(raw)
	if err != nil || !object.SameIntegers(raw, body) {
		if failure := kube.Undecodable(raw, r.Kind.New()); failure != nil {
			return nil, failure //nolint:wrapcheck // The caller names the object.
		}
	}
	return body, err
}

// Options are what a Reconciler needs of its kind and operator.
type Options struct {
	Settings declaration.Settings
	Kind     declaration.Kind
	Views    *schemaview.Current
	// State is what this process remembers of the objects. It outlives the Reconciler.
	State     *State
	FirstList *objects.FirstList
	Store     *kindstore.State
	// Server and Cache read the objects of the kind. Server also writes them.
	Server       kube.Objects
	Cache        client.Reader
	Reports      *report.Kind
	RecordOwners *kube.RecordOwners
	// Wake takes an object to its next reconciliation, WakeAfter does so after a while.
	Wake      func(types.NamespacedName)
	WakeAfter func(types.NamespacedName, time.Duration)
	// Behind reports whether an index has not seen a version of an object yet. Then the object is woken once the index has.
	Behind func(key types.NamespacedName, version string) bool
	// Own reports whether the operator keeps its own state in an object. Handlers are never called for it.
	Own func(types.NamespacedName) bool
	// Failed reports whether an object of the cache could not be decoded.
	Failed func(client.Object) bool
	// Lost reports whether another replica may act. Elects means that there are several replicas, Alone that this process is the only one.
	Lost          func() bool
	Elects, Alone bool
	// Why tells why nothing is reconciled any more, after the context has ended.
	Why func() error
	// Abandoned counts the daemons that are abandoned and have not returned.
	Abandoned *atomic.Int64
}

// Reconciler reconciles the objects of one kind. Its queue gives it one object at a time per name. Make it with New.
type Reconciler struct {
	Options

	daemons *daemons.Daemons
	fields  []object.Path
	begun   time.Time
	// stop is closed when nothing is to be reconciled any more. The grace period is over when attempts ends.
	stop     <-chan struct{}
	attempts context.Context //nolint:containedctx // It is the life of all attempts.
}

// New returns what reconciles the objects of a kind until the context ends. Call the result end when nothing is reconciled any more.
func New(ctx context.Context, options Options) (r *Reconciler, end func()) {
	r = &Reconciler{Options: options, fields: options.Views.Now().Pure.StatusFields(), begun: time.Now(), stop: ctx.Done()}
	r.attempts, end = r.outlasting(ctx, r.Settings.Grace)
	r.daemons = daemons.New(daemons.Options{
		Kind: r.Kind, Views: r.Views, Reports: r.Reports, Cache: r.Cache, Server: r.Server,
		Invoked: r.FirstList.Invoked, Submit: r.State.Objects.PutEdits, Wake: r.Wake,
		Stop: r.stop, Why: r.Why, Limit: r.limitGrace, Abandoned: r.Abandoned,
	})
	context.AfterFunc(ctx, func() { r.daemons.Close(r.Why()) })
	r.Reports.OnAttempt = r.onAttempt
	return r, end
}

// limitGrace limits the grace of a daemon that is stopped now.
func (r *Reconciler) limitGrace(grace time.Duration) time.Duration {
	switch {
	case r.Lost():
		return 0
	case r.stopping():
		return min(grace, r.Settings.Grace)
	}
	return grace
}

// finalTries is how often an object is reconciled for what its daemons have left when the operator stops.
const finalTries = 10

// essence is the part of an object whose change means something to the handlers.
func (r *Reconciler) essence(body object.Body) object.Body {
	return object.Essence(body, r.Settings.Identity, r.fields)
}

// Reconcile takes one object through a reconciliation.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := r.detached(ctx)
	defer cancel()
	// Only the first reconciliation of an object of the first list waits behind live changes.
	normal := 0 // mutant: low-priority-stays
	r.FirstList.Begin(request.NamespacedName)
	waiting := r.State.Objects.TakeEvents(request.NamespacedName)
	if r.Own(request.NamespacedName) {
		r.FirstList.Done(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	r.observe(ctx, request.NamespacedName, waiting)
	wake, err := r.reconcile(ctx, request.NamespacedName)
	if err != nil {
		r.Reports.Metrics.Pending(request.String())
		err = r.Reports.RedactError(err, r.shown(ctx, request.NamespacedName))
		log := r.Reports.Log.With("object", request.String(), "error", err)
		if panicked, is := errors.AsType[*filter.PanicError](err); is {
			log = log.With("stack", string(panicked.Stack))
		}
		log.Error("reconcile failed, will retry")
		return reconcile.Result{Priority: &normal}, err
	}
	if wake.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(time.Until(wake), time.Millisecond), Priority: &normal}, nil
}

// onAttempt tells a test of an attempt.
func (r *Reconciler) onAttempt(of types.NamespacedName, run handler.Run, outcome record.Outcome) {
	if r.Settings.OnAttempt != nil {
		r.Settings.OnAttempt(declaration.Attempt{Kind: r.Kind.GVK, Object: of, Handler: run.ID, Reason: run.Reason, Number: run.Attempt, Outcome: outcome})
	}
}

// shown returns the object that the cache has, nil for none.
func (r *Reconciler) shown(ctx context.Context, key types.NamespacedName) object.Body {
	cached := r.Kind.New()
	if err := r.Cache.Get(ctx, key, cached); err != nil {
		return nil
	}
	body, err := r.Kind.Body(cached)
	if err != nil {
		return nil
	}
	return body
}

// stopping reports whether no handler may begin any more.
func (r *Reconciler) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return r.Lost()
	}
}

// EndDaemons waits until all daemons have ended, or are abandoned, after the operator was asked to stop and its reconciliations are
// over. What they have left is written then, unless another replica may act.
func (r *Reconciler) EndDaemons(ctx context.Context) {
	r.daemons.Close(r.Why())
	r.daemons.Wait()
	if r.Lost() {
		return
	}
	ctx, cancel := r.detached(ctx)
	defer cancel()
	for _, key := range r.State.Objects.Keys() {
		for tries := 0; r.State.Objects.HasEdits(key) && tries < finalTries; tries++ {
			if last := r.State.Objects.Known(key); last != nil {
				last.freshness.patience, last.conflicts = time.Time{}, conflicts{} // Its last reconciliation is over.
			}
			if _, err := r.reconcile(ctx, key); err != nil {
				r.Reports.Log.Error("cannot write the last changes of a daemon", "object", key.String(), "error", r.Reports.RedactError(err))
				break
			}
		}
	}
}

// takeoverDoubt is how long after a replica has taken over the cache may not show what the one before it has written.
const takeoverDoubt = time.Minute

// doubtful reports whether the cache may not show yet what the replica before this one has written. Without an election that is not known,
// so it is doubted, unless the process is alone.
func (r *Reconciler) doubtful() bool {
	return !r.Alone && time.Since(r.begun) < takeoverDoubt // mutant: no-read-in-foreign-manager
}
