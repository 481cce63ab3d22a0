package engine

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/selected"
)

// Standby fills the caches of a replica that waits to be elected, so that it begins at once when it is. It is a Runnable
// of a manager.
type Standby struct {
	Operator *Operator

	readiness readiness
}

// NeedLeaderElection lets it run in replicas that are not elected.
func (s *Standby) NeedLeaderElection() bool { return false }

// Start asks for the objects of each kind, as soon as it is served, and returns when the context ends.
func (s *Standby) Start(ctx context.Context) error {
	s.Operator.Settings.Log.Info("waiting to be elected as leader", "lease", s.Operator.Election.Lease.Describe())
	var waiting sync.WaitGroup
	for _, kind := range s.kinds() {
		s.readiness.report(kind.GVK.String(), notListed)
		waiting.Go(func() { s.sync(ctx, kind) })
	}
	if len(s.Operator.Selections) > 0 {
		waiting.Go(func() { s.syncChosen(ctx) })
	}
	waiting.Wait()
	return nil
}

// syncChosen fills the caches of what selections choose, until this replica is elected: then the operator goes on with them.
func (s *Standby) syncChosen(ctx context.Context) {
	ctx, cancel := s.Operator.Election.before(ctx)
	defer cancel()
	serve := func(ctx context.Context, one *selected.Chosen) {
		s.readiness.report(one.Kind.GVK.String(), notListed)
		_ = s.loopOf(declaration.Watched{GVK: one.Kind.GVK, New: one.Kind.New}).Run(ctx) // It has no errors of its own.
	}
	release := func(ctx context.Context, one *selected.Chosen) {
		s.Operator.letGo(ctx, one)
		s.readiness.forget(one.Kind.GVK.String())
	}
	c := selected.New(s.Operator.choice(serve, release))
	s.readiness.chooser.Store(c)
	c.Run(ctx)
}

// kinds are all that the operator will look at.
func (s *Standby) kinds() []declaration.Watched {
	all := s.Operator.watched()
	for _, kind := range s.Operator.Kinds {
		all = append(all, declaration.Watched{GVK: kind.GVK, New: kind.New})
	}
	return all
}

// sync fills the cache with the objects of a kind whenever it is served, until the replica is elected: then the operator sees to it.
func (s *Standby) sync(ctx context.Context, kind declaration.Watched) {
	ctx, cancel := s.Operator.Election.before(ctx)
	defer cancel()
	l := s.loopOf(kind)
	l.Served = served(s.Operator.Discovery, kind.GVK)
	l.Vanished = func(ctx context.Context, found kube.Description) error {
		if !s.Operator.Election.waiting() {
			return nil
		}
		s.readiness.report(kind.GVK.String(), kube.ErrNotServed.Error())
		s.Operator.Settings.Log.Warn("kind no longer served while waiting to be elected", "kind", kind.GVK.Kind)
		if err := s.Operator.Informers.Remove(ctx, kind.GVK, kind.New()); err != nil {
			s.Operator.Settings.Log.Debug("cannot remove informer", "kind", kind.GVK.Kind, "error", err)
		}
		s.Operator.unwatched(kind.GVK, found.Resource)
		return nil
	}
	_ = l.Run(ctx) // It has no errors of its own.
}

// loopOf returns a loop that fills the cache with the objects of a kind.
func (s *Standby) loopOf(kind declaration.Watched) kindloop.Loop {
	return kindloop.Loop{
		Informers: s.Operator.Informers,
		Find: func(ctx context.Context) (kube.Description, error) {
			found, err := kube.Describe(ctx, s.Operator.Discovery, kind.GVK)
			if err == nil {
				_, _, err = s.Operator.Informers.Get(ctx, kind.GVK, kind.New(), cache.BlockUntilSynced(true))
			}
			if err == nil {
				s.readiness.report(kind.GVK.String(), "")
			}
			return found, err
		},
		Waiting: func(err error, _ bool) { s.readiness.report(kind.GVK.String(), err.Error()) },
		Serve: func(ctx context.Context, _ kube.Description) error {
			<-ctx.Done()
			return nil
		},
	}
}

// ready is nil when the objects of every kind are there.
func (s *Standby) ready() error {
	if s == nil {
		return nil // Without an election this is unknown.
	}
	for _, watched := range s.Operator.watched() {
		if err := s.readiness.of(watched.GVK.Kind, watched.GVK.String()); err != nil {
			return err
		}
	}
	return s.readiness.ofHandled(s.Operator.Kinds, s.Operator.Selections)
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
