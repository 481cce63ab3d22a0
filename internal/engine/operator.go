package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/report"
)

// Operator runs what handles each kind. It is a Runnable of a manager.
type Operator struct {
	Settings declaration.Settings
	Kinds    []declaration.Kind
	// Selections choose further kinds at run time.
	Selections []declaration.Selection
	// Relations are the kinds whose objects wake handlers.
	Relations []declaration.Relation
	// Indexes are complete before any handler runs.
	Indexes []declaration.Index
	// Startup handlers run before anything is served, Cleanup handlers when no other handler runs any more.
	Startup, Cleanup []declaration.Activity
	// Live reads and writes without a cache.
	Live  client.Client
	Cache cache.Cache
	// Informers are those of the cache. They tell when a watch has failed.
	Informers *kindloop.Informers
	Discovery discovery.DiscoveryInterface
	// EventSink writes events; nil for none.
	EventSink *kube.EventSink
	Metrics   *metrics.Metrics
	Election  Election
	// Problems logs why the API server cannot be used; nil for no log.
	Problems *kube.ProblemLog
	// WatchHealth has the health of each watch, NamespacedCache the namespaces that exist; nil if unknown.
	WatchHealth     *kube.WatchHealth
	NamespacedCache *kube.NamespacedCache
	// Tolerance knows which objects of the cache could not be decoded.
	Tolerance *kube.Tolerance
	// RecordOwners knows which records another client has written last.
	RecordOwners *kube.RecordOwners

	events           *report.Events
	undecodables     *undecodables
	begun            atomic.Bool
	working          atomic.Bool
	abandonedDaemons atomic.Int64
	relatedWatches   map[schema.GroupVersionKind]*relatedWatch
	schemas          schemas
	// end ends when the operator is asked to stop.
	end <-chan struct{}
	// readiness says what is in the way of each kind.
	readiness readiness
	// cachedTypes are the cached kinds.
	cachedTypes kube.CachedTypes
}

// Client is what handlers read and write with.
func (o *Operator) Client() client.Client {
	split := kube.SplitClient{Client: o.Live, Cache: o.Cache, Cached: &o.cachedTypes, Tolerance: o.Tolerance}
	for _, kind := range o.Kinds {
		split.Cached.Add(kind.GVK, kind.New())
	}
	for _, watched := range o.watched() {
		split.Cached.AddRelated(watched.GVK, watched.New())
	}
	return split
}

// NeedLeaderElection keeps a standby from handling objects.
func (o *Operator) NeedLeaderElection() bool { return true }

// Start serves every kind until the context ends; then it returns when all running handlers have, and those of cleanup. Where
// another replica may act it returns at once: the contexts of running handlers have ended then, and they can write nothing.
func (o *Operator) Start(ctx context.Context) error {
	if o.Election.Lease == nil {
		return o.act(ctx)
	}
	o.Settings.Log.Info("elected as leader")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.working.Store(true) // Before the goroutine is there, so that the Lease is not released under it.
	ended, lost := make(chan error, 1), make(chan struct{})
	go func() { ended <- o.act(ctx) }()
	go func() {
		if o.Election.Lease.AwaitLoss(ctx) {
			close(lost)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-lost:
		return errLeaseLost
	}
}

// errLeaseLost ends a process that another one has replaced.
var errLeaseLost = errors.New("leader election lost: the Lease was not renewed in time")

func (o *Operator) act(ctx context.Context) error {
	o.working.Store(true)
	defer o.working.Store(false)
	until := o.cleanupTime(ctx)
	if started, err := startUp(ctx, o.Startup, o.Settings); !started || err != nil {
		return err
	}
	o.begun.Store(true)
	err := o.serveKinds(ctx)
	if !o.Election.lost() { // Else it is the other one's to clean up.
		cleanUp(ctx, until(), o.Cleanup, o.Settings)
	}
	return err
}

// Idle reports whether no handler runs, not even a daemon that is abandoned, and none will.
func (o *Operator) Idle() bool { return !o.working.Load() && o.abandonedDaemons.Load() == 0 }

func (o *Operator) serveKinds(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, stopEvents := report.NewEvents(o.EventSink, o.Settings.Identity)
	defer stopEvents()
	o.events, o.end = events, ctx.Done()
	o.undecodables = newUndecodables(o)
	o.startRelatedWatches(ctx)
	go o.schemas.follow(ctx, o)
	failures := make(chan error, len(o.Kinds))
	var running sync.WaitGroup
	for _, kind := range o.Kinds {
		running.Go(func() {
			if err := o.serve(ctx, kind); err != nil && !errors.Is(err, context.Canceled) {
				failures <- fmt.Errorf("serve %s: %w", kind.GVK, err)
				cancel()
			}
		})
	}
	if len(o.Selections) > 0 {
		running.Go(func() { o.serveChosen(ctx) })
	}
	running.Wait()
	close(failures)
	var joined error
	for failure := range failures {
		joined = errors.Join(joined, failure)
	}
	return joined
}

// Ready is nil when every kind is served and listed; else it names the first one that is not. A replica that is not
// elected is ready when it could begin.
func (o *Operator) Ready() error {
	if o.Election.waiting() {
		return o.Election.Standby.ready()
	}
	if err := o.readiness.ofHandled(o.Kinds, o.Selections); err != nil {
		return err
	}
	if err := o.WatchHealth.Failure(watchPatience); err != nil {
		return err
	}
	for _, watched := range o.watched() {
		if err := o.readiness.of(watched.GVK.Kind, watched.Place()); err != nil {
			return err
		}
	}
	return nil
}
