package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/reconciler"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// kindController has what the objects of one kind are handled with: the informer fills its queue, from which the reconciler gets one object at a time per name.
type kindController struct {
	settings declaration.Settings
	kind     declaration.Kind
	views    schemaview.Current
	cache    cache.Cache
	// state is what the process remembers of the objects.
	state *reconciler.State
	// relatedWatch has the indexes of the kind; nil if there are none and no handler of another kind watches it.
	relatedWatch *relatedWatch
	startup      objects.FirstList
	store        *kindstore.State
	namespaces   *kube.NamespacedCache
	informers    *kindloop.Informers
	undecodables *undecodables
	// reports is for all objects of the kind.
	reports *report.Kind
	// end is closed when the operator is asked to stop.
	end <-chan struct{}
	// election decides whether this replica may act.
	election Election
	// queue is where objects wait until they are reconciled.
	queue queue
}

// newKindController returns what handles the objects of a kind.
func newKindController(o *Operator, kind declaration.Kind, found kube.Description, before *reconciler.State) *kindController {
	k := &kindController{
		state: before, settings: o.Settings, kind: kind, cache: o.Cache,
		election: o.Election, undecodables: o.undecodables, relatedWatch: o.relatedWatches[kind.GVK], namespaces: o.NamespacedCache, informers: o.Informers, end: o.end,
	}
	k.reports = &report.Kind{
		Identity: o.Settings.Identity, GVK: kind.GVK, Log: o.Settings.Log.With("kind", kind.GVK.Kind), Events: o.events,
		Metrics: o.Metrics.Kind(o.Settings.Identity, kind.GVK.GroupKind().String()), Redactor: redact.New(), LogEvents: o.Settings.LogEvents,
	}
	k.applySchema(found)
	k.startup.Log = k.reports.Log
	k.store = kindstore.New(k.storeOptions(o, found))
	return k
}

// reconcilerOptions returns what the reconciler needs of the kind.
func (k *kindController) reconcilerOptions(o *Operator) reconciler.Options {
	return reconciler.Options{
		Settings: k.settings, Kind: k.kind, Views: &k.views, State: k.state, FirstList: &k.startup, Store: k.store,
		Server: kube.Objects{Client: o.Live, Kind: k.kind.GVK, Owner: k.settings.Identity}, Cache: k.cache, Reports: k.reports, RecordOwners: o.RecordOwners,
		Wake: k.wake,
		WakeAfter: func(key types.NamespacedName, d time.Duration) {
			k.queue.AddAfter(reconcile.Request{NamespacedName: key}, d)
		},
		Behind: func(key types.NamespacedName, version string) bool {
			return k.relatedWatch.awaits(key, version, func() { k.wake(key) })
		},
		Own: k.own, Failed: func(one client.Object) bool { return k.undecodables.failed(one) },
		Lost: k.election.lost, Elects: k.election.Lease != nil, Alone: k.election.Alone,
		Why: k.whyOver, Abandoned: &o.abandonedDaemons,
	}
}

// wake takes an object to its next reconciliation.
func (k *kindController) wake(key types.NamespacedName) {
	k.queue.Add(reconcile.Request{NamespacedName: key})
}

// storeOptions returns what the store needs to know of a kind that is described so.
func (k *kindController) storeOptions(o *Operator, found kube.Description) kindstore.Options {
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
