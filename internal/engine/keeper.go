package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/declared"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// keeper handles all objects of one kind. Its queue gives it one object at a time per key.
type keeper struct {
	settings declared.Settings
	kind     declared.Kind
	fields   []object.Path
	views    schemaview.Current
	server   kube.Objects
	cache    cache.Cache
	*kindState
	// relatedWatch has the indexes of the kind; nil if there are none and no handler of another kind watches it.
	relatedWatch *relatedWatch
	daemons      *daemons.Daemons
	startup      objects.FirstList
	store        *kindstore.State
	namespaces   *kube.NamespacedCache
	undecodables *undecodables
	recordOwners *kube.RecordOwners
	// reports is for all objects of the kind. A pass has one for its object, too.
	reports *report.Kind
	// stop ends when nothing is to be handled any more, end when the operator is asked to stop. The grace period is over when
	// attempts ends.
	stop, end <-chan struct{}
	attempts  context.Context //nolint:containedctx // It is the life of all attempts.
	// election decides whether this replica may act. It began to do so at begun.
	election Election
	begun    time.Time
	// queue is where objects wait for their pass.
	queue queue
}

// newKeeper returns what handles the objects of a kind until the context ends.
func newKeeper(ctx context.Context, o *Operator, kind declared.Kind, found kube.Description, before *kindState) *keeper {
	k := &keeper{
		kindState: before,
		settings:  o.Settings, kind: kind,
		server: kube.Objects{Client: o.Live, Kind: kind.GVK, Owner: o.Settings.Identity},
		cache:  o.Cache,
	}
	k.reports = &report.Kind{
		Identity: o.Settings.Identity, GVK: kind.GVK, Log: o.Settings.Log.With("kind", kind.GVK.Kind), Events: o.events,
		Metrics: o.Metrics.Kind(o.Settings.Identity, kind.GVK.GroupKind().String()), Redactor: redact.New(),
		LogEvents: o.Settings.LogEvents, OnAttempt: k.onAttempt,
	}
	k.applySchema(found)
	k.fields = k.views.Now().Pure.StatusFields()
	k.election, k.begun = o.Election, time.Now()
	k.startup.Log = k.reports.Log
	k.undecodables, k.recordOwners = o.undecodables, o.RecordOwners
	k.relatedWatch = o.relatedWatches[kind.GVK]
	k.namespaces = o.NamespacedCache
	k.stop, k.end, k.attempts = ctx.Done(), o.end, ctx
	k.daemons = daemons.New(k.daemonOptions(o))
	k.store = kindstore.New(k.storeOptions(o, found))
	return k
}

// storeOptions returns what the store needs to know of a kind that is described so.
func (k *keeper) storeOptions(o *Operator, found kube.Description) kindstore.Options {
	options := kindstore.Options{
		Store:    kube.KindStore{Client: o.Live, Owner: k.settings.Identity, Place: k.settings.StatePlace()},
		Resource: schema.GroupResource{Group: k.kind.GVK.Group, Resource: found.Resource}.String(),
		Margin:   k.settings.Margin, BuiltIn: found.Schema == "",
		Records: func() kindstore.Records {
			now := k.views.Now()
			return kindstore.Records{OfEveryObject: now.Pure.EveryObject(), Carrier: now.Description.Carrier}
		},
		FirstList: &k.startup, Health: o.WatchHealth, Namespaces: o.NamespacedCache, Log: k.reports.Log,
	}
	if found.Namespaced {
		options.Served = k.settings.Namespaces
	}
	return options
}

// essence is the part of an object whose change means something to the handlers.
func (k *keeper) essence(body object.Body) object.Body {
	return object.Essence(body, k.settings.Identity, k.fields)
}

// Reconcile takes one object through a pass.
func (k *keeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := k.detached(ctx)
	defer cancel()
	// Only the first pass of an object of the first list waits behind live changes.
	normal := 0 // mutant: low-priority-stays
	k.startup.Begin(request.NamespacedName)
	waiting := k.entries.TakeEvents(request.NamespacedName)
	if k.own(request.NamespacedName) {
		k.startup.Done(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	k.observe(ctx, request.NamespacedName, waiting)
	wake, err := k.pass(ctx, request.NamespacedName)
	if err != nil {
		k.reports.Metrics.Pending(request.String())
		err = k.reports.RedactError(err, k.shown(ctx, request.NamespacedName))
		log := k.reports.Log.With("object", request.String(), "error", err)
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
func (k *keeper) onAttempt(of types.NamespacedName, run handler.Run, outcome record.Outcome) {
	if k.settings.OnAttempt != nil {
		k.settings.OnAttempt(declared.Attempt{Kind: k.kind.GVK, Object: of, Handler: run.ID, Reason: run.Reason, Number: run.Attempt, Outcome: outcome})
	}
}

// shown returns the object that the cache has, nil for none.
func (k *keeper) shown(ctx context.Context, key types.NamespacedName) object.Body {
	cached := k.kind.New()
	if err := k.cache.Get(ctx, key, cached); err != nil {
		return nil
	}
	body, err := k.kind.Body(cached)
	if err != nil {
		return nil
	}
	return body
}

// stopping reports whether no handler may begin any more.
func (k *keeper) stopping() bool {
	select {
	case <-k.stop:
		return true
	default:
		return k.election.lost()
	}
}
