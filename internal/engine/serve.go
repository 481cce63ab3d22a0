package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/reconciler"
)

// How long the first list of a kind may take (readiness tells of it; the
// operator goes on with its other kinds), and the back-off of reconciliations that fail as a whole.
const (
	watchPatience   = 5 * time.Second // how long a watch may fail before readiness tells of it
	listPatience    = 10 * 365 * 24 * time.Hour
	promoteEvery    = time.Second // how often objects of the first list are moved up among live changes
	firstPassRetry  = 200 * time.Millisecond
	longestPassWait = 2 * time.Minute
)

// serve handles the objects of a kind whenever the kind is served: its definition can come, go and come back.
func (o *Operator) serve(ctx context.Context, kind declaration.Kind) error {
	l := o.loopOf(kind)
	l.Serve = func(ctx context.Context, found kube.Description) error {
		return o.handle(ctx, kind, found, &reconciler.State{})
	}
	l.Vanished = func(ctx context.Context, found kube.Description) error {
		o.Settings.Log.Warn("kind no longer served, handlers paused until it returns", "kind", kind.GVK.Kind)
		if err := o.Informers.Remove(ctx, kind.GVK, kind.New()); err != nil {
			return fmt.Errorf("remove informer: %w", err)
		}
		o.undecodables.clear(kind.GVK)
		o.unwatched(kind.GVK, found.Resource)
		return nil
	}
	l.Served = served(o.Discovery, kind.GVK)
	return l.Run(ctx)
}

// loopOf returns a loop that waits until a kind can be handled.
func (o *Operator) loopOf(kind declaration.Kind) kindloop.Loop {
	return kindloop.Loop{
		Informers: o.Informers,
		Find:      func(ctx context.Context) (kube.Description, error) { return kube.Describe(ctx, o.Discovery, kind.GVK) },
		Waiting: func(err error, news bool) {
			if o.readiness.report(kind.GVK.String(), err.Error()); news {
				o.logAwaited(kind, err)
			}
		},
	}
}

// served returns a function that returns kube.ErrNotServed if the kind is not served.
func served(in discovery.DiscoveryInterface, kind schema.GroupVersionKind) func(context.Context) error {
	return func(ctx context.Context) error { return kube.Served(ctx, in, kind) }
}

// unwatched removes what is known of the watch of a kind.
func (o *Operator) unwatched(kind schema.GroupVersionKind, resource string) {
	name := schema.GroupResource{Group: kind.Group, Resource: resource}.String()
	o.WatchHealth.Forget(name)
	o.Metrics.Unwatched(o.Settings.Identity, name)
}

// logAwaited logs why a kind is not served yet.
func (o *Operator) logAwaited(kind declaration.Kind, err error) {
	log := o.Settings.Log.With("kind", kind.GVK.Kind, "apiVersion", kind.GVK.GroupVersion().String())
	switch {
	case errors.Is(err, kube.ErrNoSchema):
		log.Warn("kind has no published OpenAPI schema, waiting for it", "error", err,
			"remedy", "check that the API server of the kind publishes OpenAPI v3 schemas")
	case errors.Is(err, kube.ErrNotServed):
		log.Warn("kind not served, waiting for it", "error", err,
			"remedy", "install its CustomResourceDefinition: pipe the output of the command crds to kubectl apply -f -")
	case o.Problems.Report(log, err): // The problem has its own message.
	default:
		log.Warn("cannot look up kind in discovery, will retry", "error", err)
	}
}

// handle handles the objects of a kind until the context ends.
func (o *Operator) handle(ctx context.Context, kind declaration.Kind, found kube.Description, before *reconciler.State) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := newKindController(o, kind, found, before)
	defer k.reports.Metrics.Close()
	reconciles, end := reconciler.New(ctx, k.reconcilerOptions(o))
	defer end()
	k.reportServing()
	defer o.schemas.keep(k)()
	anyName := true // Names are of kinds, and several operators of one process may handle the same kind.
	c, err := controller.NewTypedUnmanaged(o.Settings.Identity+"/"+found.Resource, controller.TypedOptions[reconcile.Request]{
		Reconciler:              reconciles,
		MaxConcurrentReconciles: o.Settings.Workers,
		SkipNameValidation:      &anyName,
		CacheSyncTimeout:        listPatience,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPassRetry, longestPassWait),
	})
	if err != nil {
		return fmt.Errorf("create controller: %w", err)
	}
	o.readiness.report(kind.GVK.String(), notListed)
	relatedSources := o.relatedSourcesOf(k)
	if err := o.awaitRelated(ctx, relatedSources); err != nil {
		return err
	}
	if err := o.prepare(ctx, k); err != nil {
		return err
	}
	if err := c.Watch(&informer{of: k, removed: cancel, listed: func() { o.readiness.report(kind.GVK.String(), "") }}); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for _, related := range relatedSources {
		if err := c.Watch(related); err != nil {
			return fmt.Errorf("watch %s: %w", related.relation.GVK, err)
		}
	}
	defer reconciles.EndDaemons(ctx)
	return c.Start(ctx)
}

// reportServing logs that the objects of the kind are handled from now on, and where their records are stored.
func (k *kindController) reportServing() {
	records := string(k.views.Now().Description.Carrier)
	if !k.kind.Recorded() {
		records = "none"
	}
	k.reports.Log.Info("serving", "apiVersion", k.kind.GVK.GroupVersion().String(), "records", records)
}

// prepare reads what records need beside the objects that have them.
func (o *Operator) prepare(ctx context.Context, k *kindController) error {
	if !k.kind.Recorded() {
		return nil
	}
	if err := o.keyed(ctx, k); err != nil {
		return err
	}
	if err := k.store.Load(ctx); err != nil {
		return err
	}
	go k.store.Run(ctx)
	return nil
}
