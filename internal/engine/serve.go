package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/reconciler"
)

// How often a kind that is not served is looked for, how long its first list may take (readiness tells of it; the
// operator goes on with its other kinds), and the back-off of reconciliations that fail as a whole.
const (
	lookEvery       = time.Second
	watchPatience   = 5 * time.Second // how long a watch may fail before readiness tells of it
	lookSoon        = lookEvery / 10  // for a schema that is about to be published
	listPatience    = 10 * 365 * 24 * time.Hour
	promoteEvery    = time.Second // how often objects of the first list are moved up among live changes
	firstPassRetry  = 200 * time.Millisecond
	longestPassWait = 2 * time.Minute
)

// serve handles the objects of a kind whenever the kind is served: its definition can come, go and come back.
func (o *Operator) serve(ctx context.Context, kind declaration.Kind) error {
	for {
		found, err := o.discover(ctx, kind)
		if err != nil {
			return err
		}
		vanished, err := o.serveAsLongAsServed(ctx, kind, found)
		if err != nil || !vanished {
			return err
		}
		o.Settings.Log.Warn("kind no longer served, handlers paused until it returns", "kind", kind.GVK.Kind)
		if err := o.Cache.RemoveInformer(ctx, kind.New()); err != nil {
			return fmt.Errorf("remove informer: %w", err)
		}
		o.undecodables.clear(kind.GVK)
		resource := schema.GroupResource{Group: kind.GVK.Group, Resource: found.Resource}.String()
		o.WatchHealth.Forget(resource)
		o.Metrics.Unwatched(o.Settings.Identity, resource)
	}
}

// serveAsLongAsServed handles the objects of a kind until the context ends, or the kind vanishes.
func (o *Operator) serveAsLongAsServed(ctx context.Context, kind declaration.Kind, found kube.Description) (vanished bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan bool, 1)
	go func() {
		gone <- o.awaitVanishing(ctx, kind)
		cancel()
	}()
	if err := o.handle(ctx, kind, found, &kindState{}); err != nil && !errors.Is(err, context.Canceled) {
		return false, err
	}
	cancel()
	return <-gone, nil
}

// handle handles the objects of a kind until the context ends.
func (o *Operator) handle(ctx context.Context, kind declaration.Kind, found kube.Description, before *kindState) error {
	k := newKeeper(o, kind, found, before)
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
	o.report(kind.GVK.String(), "its objects are not listed yet")
	relatedSources := o.relatedSourcesOf(k)
	if err := o.awaitRelated(ctx, relatedSources); err != nil {
		return err
	}
	if err := o.prepare(ctx, k); err != nil {
		return err
	}
	if err := c.Watch(&informer{keeper: k, listed: func() { o.report(kind.GVK.String(), "") }}); err != nil {
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
func (k *keeper) reportServing() {
	records := string(k.views.Now().Description.Carrier)
	if !k.kind.Recorded() {
		records = "none"
	}
	k.reports.Log.Info("serving", "apiVersion", k.kind.GVK.GroupVersion().String(), "records", records)
}

// prepare reads what records need beside the objects that have them.
func (o *Operator) prepare(ctx context.Context, k *keeper) error {
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

// discover waits until the API server serves the kind, and says so once.
func (o *Operator) discover(ctx context.Context, kind declaration.Kind) (kube.Description, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	logged, soon := "", watchPatience/lookSoon
	for {
		found, err := kube.Describe(ctx, o.Discovery, kind.GVK)
		if err == nil {
			return found, nil
		}
		o.report(kind.GVK.String(), err.Error())
		if errors.Is(err, kube.ErrNoSchema) && soon > 0 {
			soon--
			ticker.Reset(lookSoon)
		} else if logged != err.Error() && ctx.Err() == nil {
			ticker.Reset(lookEvery)
			o.logAwaited(kind, err)
			logged = err.Error()
		}
		select {
		case <-ctx.Done():
			return kube.Description{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
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
