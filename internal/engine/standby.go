package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Standby fills the caches of a replica that waits to be elected, so that it begins at once when it is. It is a Runnable
// of a manager.
type Standby struct {
	Operator *Operator

	mu   sync.Mutex
	cold map[string]string
	// chooser looks for what selections choose; nil where there are none.
	chooser *chooser
}

// NeedLeaderElection lets it run in replicas that are not elected.
func (s *Standby) NeedLeaderElection() bool { return false }

// Start asks for the objects of each kind, as soon as it is served, and returns when the context ends.
func (s *Standby) Start(ctx context.Context) error {
	s.Operator.Settings.Log.Info("waiting to be elected as leader", "lease", s.Operator.Election.Lease.Describe())
	var waiting sync.WaitGroup
	for _, kind := range s.kinds() {
		waiting.Go(func() { s.warm(ctx, kind) })
	}
	if len(s.Operator.Selections) > 0 {
		waiting.Go(func() { s.warmChosen(ctx) })
	}
	waiting.Wait()
	return nil
}

// warmChosen fills the caches of what selections choose, until this replica is elected: then the operator goes on with them.
func (s *Standby) warmChosen(ctx context.Context) {
	ctx, cancel := s.Operator.Election.before(ctx)
	defer cancel()
	c := newChooser(s.Operator)
	c.serve = func(ctx context.Context, one *chosen) {
		s.fill(ctx, declaration.Watched{GVK: one.GVK, New: one.New})
		<-ctx.Done()
	}
	c.release = func(ctx context.Context, one *chosen) {
		s.Operator.letGo(ctx, one)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cold, one.GVK.String())
	}
	s.mu.Lock()
	s.chooser = c
	s.mu.Unlock()
	c.run(ctx)
}

// kinds are all that the operator will look at.
func (s *Standby) kinds() []declaration.Watched {
	all := s.Operator.watched()
	for _, kind := range s.Operator.Kinds {
		all = append(all, declaration.Watched{GVK: kind.GVK, New: kind.New})
	}
	return all
}

// warm fills the cache with the objects of a kind whenever it is served, until the replica is elected: then the operator sees
// to it that what vanishes is let go of.
func (s *Standby) warm(ctx context.Context, kind declaration.Watched) {
	for {
		found, filled := s.fill(ctx, kind)
		if !filled || !s.awaitVanishing(ctx, kind) {
			return
		}
		s.note(kind, kube.ErrNotServed)
		s.Operator.Settings.Log.Warn("kind no longer served while waiting to be elected", "kind", kind.GVK.Kind)
		if err := s.Operator.Cache.RemoveInformer(ctx, kind.New()); err != nil {
			s.Operator.Settings.Log.Debug("cannot remove informer", "kind", kind.GVK.Kind, "error", err)
		}
		resource := schema.GroupResource{Group: kind.GVK.Group, Resource: found.Resource}.String()
		s.Operator.WatchHealth.Forget(resource)
		s.Operator.Metrics.Unwatched(s.Operator.Settings.Identity, resource)
	}
}

// awaitVanishing returns true when the kind is not served any more, and false when the replica is elected or ends before.
func (s *Standby) awaitVanishing(ctx context.Context, kind declaration.Watched) bool {
	ctx, cancel := s.Operator.Election.before(ctx)
	defer cancel()
	return s.Operator.awaitVanishing(ctx, declaration.Kind{GVK: kind.GVK}) && s.Operator.Election.waiting()
}

// fill fills the cache with the objects of a kind as soon as it is served. It is false when the context ends before.
func (s *Standby) fill(ctx context.Context, kind declaration.Watched) (found kube.Description, filled bool) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		found, err := kube.Describe(ctx, s.Operator.Discovery, kind.GVK)
		if err == nil {
			_, err = s.Operator.Cache.GetInformer(ctx, kind.New(), cache.BlockUntilSynced(true))
		}
		s.note(kind, err)
		if err == nil {
			return found, true
		}
		select {
		case <-ctx.Done():
			return kube.Description{}, false
		case <-ticker.C:
		}
	}
}

func (s *Standby) note(kind declaration.Watched, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cold == nil {
		s.cold = map[string]string{}
	}
	s.cold[kind.GVK.String()] = ""
	if err != nil {
		s.cold[kind.GVK.String()] = err.Error()
	}
}

// ready is nil when the objects of every kind are there.
func (s *Standby) ready() error {
	if s == nil {
		return nil // Without an election this is unknown.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	warm := func(kind, name string) error {
		trouble, known := s.cold[name]
		switch {
		case !known:
			return fmt.Errorf("%s: its objects are not listed yet", kind)
		case trouble != "":
			return fmt.Errorf("%s: %s", kind, trouble)
		}
		return nil
	}
	for _, kind := range s.kinds() {
		if err := warm(kind.GVK.Kind, kind.GVK.String()); err != nil {
			return err
		}
	}
	switch {
	case len(s.Operator.Selections) == 0:
		return nil
	case s.chooser == nil:
		return errUnknownKinds
	default:
		return s.chooser.ready(warm)
	}
}

// Election is what decides which of several replicas acts.
type Election struct {
	// Elected is closed when this one is.
	Elected <-chan struct{}
	// Lease is what the replica holds then; nil without an election.
	Lease *kube.Leadership
	// Standby keeps the caches of the replica before; nil for none.
	Standby *Standby
	// Alone: this process is the only one, so it takes nothing over from another.
	Alone bool
}

// waiting reports whether another replica is elected, or none yet.
func (e Election) waiting() bool {
	select {
	case <-e.Elected:
		return false
	default:
		return e.Elected != nil
	}
}

// before is a context that ends when this replica is elected. It must be cancelled.
func (e Election) before(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.Elected:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// lost reports whether this replica was elected and may not act any more, or cannot know.
func (e Election) lost() bool { return e.Lease != nil && !e.Lease.Held() }
