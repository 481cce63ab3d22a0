// Package simulation runs whole operators in virtual time against the API server in memory, and stops them at chosen
// requests, as a crash does.
package simulation

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// Operator is what a world runs.
type Operator interface {
	CacheOptions() cache.Options
	SetupWithManager(mgr manager.Manager) error
}

// World is an API server in memory with an operator that is started anew whenever it has crashed. It lives in one
// bubble of testing/synctest.
type World struct {
	Server *apiserver.Server
	// User reads and writes with all rights, without a cache.
	User client.Client

	t      *testing.T
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	make   func() Operator
	stop   *Stop
	lag    time.Duration
	down   time.Duration
	gates  []*gate
	ended  chan struct{}
	cancel context.CancelFunc
}

// Setup says what a world is made of.
type Setup struct {
	Definitions *apiserver.Definitions
	Scheme      *runtime.Scheme
	// Make makes the operator of a process; it is called once for each.
	Make func() Operator
	// Lag is how late every event of a watch arrives: the operator's cache is so stale.
	Lag time.Duration
	// Down is how long it takes after a crash until the next process starts.
	Down time.Duration
	// Stop is where the first process crashes; nil for nowhere.
	Stop *Stop
}

// PrepareProcess makes the libraries fit for virtual time, once for each test process, before anything else runs: their
// handler of unforeseen errors compares the virtual time with that of earlier bubbles, and would sleep for decades.
func PrepareProcess() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // There is no other way to set it.
}

// Run makes a world, lets use act in it, and ends it. It must be called in a bubble.
func Run(t *testing.T, setup Setup, use func(*World)) *World {
	t.Helper()
	api, err := apiserver.New(apiserver.WithDefinitions(setup.Definitions), apiserver.WithBookmarks(0))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	w := &World{Server: api, t: t, scheme: setup.Scheme, make: setup.Make, stop: setup.Stop, lag: setup.Lag, down: setup.Down, ended: make(chan struct{})}
	w.User, err = client.New(api.Config(), client.Options{Scheme: setup.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	// A static mapper: a discovery that hangs under the informers' lock would freeze virtual time.
	found, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(api.Config()))
	if err != nil {
		t.Fatal(err)
	}
	w.mapper = restmapper.NewDiscoveryRESTMapper(found)
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background()) // It ends in order, before the test's own.
	go w.keepRunning(ctx)
	use(w)
	w.End()
	return w
}

// End stops the operator in order and waits for it.
func (w *World) End() {
	w.cancel()
	<-w.ended
}

// Pass lets virtual time go by.
func (w *World) Pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

// Requests are the requests of all processes so far, in order.
func (w *World) Requests() []Request {
	var all []Request
	for _, g := range w.gates {
		all = append(all, g.requests()...)
	}
	return all
}

// Starts is how many processes there were.
func (w *World) Starts() int { return len(w.gates) }

// keepRunning starts the operator, and again after each crash.
func (w *World) keepRunning(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		g := newGate(w.Server, w.stop)
		g.lag = w.lag
		w.stop = nil // One crash to a world.
		w.gates = append(w.gates, g)
		if err := w.process(ctx, g); err != nil {
			w.t.Errorf("process %d of the operator: %v", len(w.gates), err)
			return
		}
		if g.dead() && w.down > 0 {
			<-time.After(w.down)
		}
	}
}

// process runs one process of the operator until the context ends or it crashes.
func (w *World) process(ctx context.Context, g *gate) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	operator := w.make()
	mgr, err := ctrl.NewManager(w.config(g), w.options(operator))
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := operator.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	go func() {
		select {
		case <-g.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := mgr.Start(ctx); err != nil && !g.dead() {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func (w *World) config(g *gate) *rest.Config {
	through := w.Server.Config()
	through.Wrap(func(next http.RoundTripper) http.RoundTripper { return g.before(next) })
	return through
}

func (w *World) options(operator Operator) ctrl.Options {
	anyName, grace := true, time.Minute
	return ctrl.Options{
		Scheme: w.scheme, Logger: logr.Discard(), Cache: operator.CacheOptions(),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:              config.Controller{SkipNameValidation: &anyName},
		MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.mapper, nil },
		GracefulShutdownTimeout: &grace,
	}
}
