package selected

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/reconciler"
)

// lookAgain is how often discovery is asked what selections choose, when nothing is missing and no watch is in trouble.
const lookAgain = 5 * time.Second

// ErrUnknownKinds keeps an operator from being ready that has not asked yet which kinds are served.
var ErrUnknownKinds = errors.New("discovery has not succeeded yet")

// Options are what a Chooser needs to know.
type Options struct {
	Selections []declaration.Selection
	Settings   declaration.Settings
	// Kinds are those that have handlers of their own. Selections do not choose them.
	Kinds     []declaration.Kind
	Discovery discovery.DiscoveryInterface
	// Informers tell when to look sooner.
	Informers *kindloop.Informers
	// Serve serves a kind until the context ends. Release is called after that, and lets go of what the kind has held.
	Serve, Release func(context.Context, *Chosen)
}

// Chooser serves the kinds that selections choose, as long as they are chosen. Make it with New. All of its state but known belongs to the goroutine
// of Run.
type Chooser struct {
	options Options

	discovery kube.DiscoveryCache
	running   map[schema.GroupKind]*Chosen
	// resting is what is known of kinds that are served and not chosen any more.
	resting   map[schema.GroupKind]*reconciler.State
	reported  map[string]string
	unsettled bool
	ended     chan struct{}
	serving   sync.WaitGroup

	// known is what the last look has found.
	known atomic.Pointer[found]
}

// found is what a look has found. It does not change.
type found struct {
	// unknown is why it is not known what is served; nil when it is.
	unknown error
	trouble []error
	kinds   []schema.GroupVersionKind
}

// Chosen is a kind that is served since it is chosen.
type Chosen struct {
	Kind     declaration.Kind
	Assigned selection.Assigned
	// State is what the process remembers of the objects, also from the time before the kind was chosen again.
	State *reconciler.State

	stop    context.CancelFunc
	stopped bool
	done    chan struct{}
}

// New returns a chooser that has not looked yet.
func New(options Options) *Chooser {
	c := &Chooser{
		options: options, discovery: kube.DiscoveryCache{Discovery: options.Discovery}, running: map[schema.GroupKind]*Chosen{},
		resting: map[schema.GroupKind]*reconciler.State{}, reported: map[string]string{}, ended: make(chan struct{}, 1),
	}
	c.known.Store(&found{unknown: ErrUnknownKinds})
	return c
}

// Run looks again and again, until the context ends and nothing is served any more.
func (c *Chooser) Run(ctx context.Context) {
	heard, end := c.options.Informers.Listen()
	defer end()
	defer c.serving.Wait()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		c.look(ctx)
		if ticker.Reset(lookAgain); c.unsettled {
			ticker.Reset(kindloop.Every)
		}
		select {
		case <-ctx.Done():
			return
		case <-heard:
		case <-ticker.C:
		case <-c.ended:
		}
	}
}

// look asks what is served, and serves what is chosen. What was chosen stays where that cannot be known.
func (c *Chooser) look(ctx context.Context) {
	served, unknown, err := c.discovery.Read(ctx)
	if ctx.Err() != nil {
		return
	}
	if c.tellFailure(err); err != nil {
		c.noteUnknown(err)
		return
	}
	c.tellUnknown(unknown)
	made := declaration.Assign(c.options.Selections, c.options.Settings, served, c.options.Kinds)
	trouble := c.tellChoices(made)
	c.tellLeft(made.Left)
	wanted := map[schema.GroupKind]selection.Assigned{}
	for _, one := range made.Kinds {
		wanted[schema.GroupKind{Group: one.Group, Kind: one.Kind}] = one
	}
	c.stopOthers(wanted)
	c.reap(ctx)
	c.forget(served)
	c.start(ctx, made.Kinds)
	c.note(trouble, made.Kinds)
}

// stopOthers stops what is not wanted any more, or not as it is.
func (c *Chooser) stopOthers(wanted map[schema.GroupKind]selection.Assigned) {
	for name, one := range c.running {
		now, is := wanted[name]
		same := is && one.Kind.GVK.Version == now.Version && slices.Equal(one.Assigned.By, now.By)
		if one.stopped || same {
			continue
		}
		one.stopped = true
		log := c.options.Settings.Log.With("kind", one.Kind.GVK.Kind, "apiVersion", one.Kind.GVK.GroupVersion().String())
		switch {
		case !is:
			log.Warn("kind no longer matches ForEvery, handlers paused until it does")
		case one.Kind.GVK.Version != now.Version:
			log.Info("preferred version of kind changed, restarting its watch", "newAPIVersion", now.APIVersion())
		default:
			log.Info("restarting the watch of kind")
		}
		one.stop()
	}
}

// reap lets go of what has ended.
func (c *Chooser) reap(ctx context.Context) {
	for name, one := range c.running {
		select {
		case <-one.done:
		default:
			continue
		}
		c.options.Release(ctx, one)
		delete(c.running, name)
		c.resting[name] = one.State
	}
}

// forget forgets what was known of kinds that are not served any more: their objects are gone.
func (c *Chooser) forget(served []selection.Resource) {
	maps.DeleteFunc(c.resting, func(name schema.GroupKind, _ *reconciler.State) bool {
		return !slices.ContainsFunc(served, func(r selection.Resource) bool { return r.Group == name.Group && r.Kind == name.Kind })
	})
}

// start begins to serve what is chosen and not served yet.
func (c *Chooser) start(ctx context.Context, kinds []selection.Assigned) {
	for _, one := range kinds {
		name := schema.GroupKind{Group: one.Group, Kind: one.Kind}
		if c.running[name] != nil {
			continue
		}
		before := c.resting[name]
		if delete(c.resting, name); before == nil {
			before = &reconciler.State{}
		}
		c.begin(ctx, one, before)
	}
}

func (c *Chooser) begin(ctx context.Context, assigned selection.Assigned, before *reconciler.State) {
	ctx, cancel := context.WithCancel(ctx)
	kind := declaration.Join(c.options.Selections, assigned)
	before.Objects.KeepDelivered(len(kind.Observers) > 0)
	before.TakeUp(kind.Relations)
	one := &Chosen{
		Kind: kind, Assigned: assigned, State: before, stop: cancel, done: make(chan struct{}),
	}
	c.running[kind.GVK.GroupKind()] = one
	c.serving.Go(func() {
		defer func() {
			cancel()
			close(one.done)
			select {
			case c.ended <- struct{}{}:
			default: // The channel says already that some have.
			}
		}()
		c.options.Serve(ctx, one)
	})
}

// note keeps what readiness tells.
func (c *Chooser) note(trouble []error, kinds []selection.Assigned) {
	now := &found{trouble: trouble}
	for _, one := range kinds {
		now.kinds = append(now.kinds, schema.GroupVersionKind{Group: one.Group, Version: one.Version, Kind: one.Kind})
	}
	c.known.Store(now)
	c.unsettled = len(trouble) > 0
}

// noteUnknown keeps why it is not known what is served, unless it was known before: that goes on.
func (c *Chooser) noteUnknown(err error) {
	if c.unsettled = true; c.known.Load().unknown != nil {
		c.known.Store(&found{unknown: fmt.Errorf("%w: %w", ErrUnknownKinds, err)})
	}
}

// Ready is nil when every kind that is chosen is served, as the function tells of each.
func (c *Chooser) Ready(of func(kind, name string) error) error {
	known := c.known.Load()
	if known.unknown != nil {
		return known.unknown
	}
	if len(known.trouble) > 0 {
		return known.trouble[0]
	}
	for _, name := range known.kinds {
		if err := of(name.Kind, name.String()); err != nil {
			return err
		}
	}
	return nil
}
