package engine

import (
	"context"
	"fmt"
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

	// mu guards the fields below.
	mu       sync.Mutex
	unsynced map[string]string
	// chooser looks for what selections choose; nil where there are none.
	chooser *selected.Chooser
}

// NeedLeaderElection lets it run in replicas that are not elected.
func (s *Standby) NeedLeaderElection() bool { return false }

// Start asks for the objects of each kind, as soon as it is served, and returns when the context ends.
func (s *Standby) Start(ctx context.Context) error {
	s.Operator.Settings.Log.Info("waiting to be elected as leader", "lease", s.Operator.Election.Lease.Describe())
	var waiting sync.WaitGroup
	for _, kind := range s.kinds() {
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
		_ = s.loopOf(declaration.Watched{GVK: one.Kind.GVK, New: one.Kind.New}).Run(ctx) // It has no errors of its own.
	}
	release := func(ctx context.Context, one *selected.Chosen) {
		s.Operator.letGo(ctx, one)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.unsynced, one.Kind.GVK.String())
	}
	c := selected.New(s.Operator.choice(serve, release))
	s.mu.Lock()
	s.chooser = c
	s.mu.Unlock()
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
		s.note(kind, kube.ErrNotServed)
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
		Kind: kind.GVK, Errors: s.Operator.WatchErrors,
		Find: func(ctx context.Context) (kube.Description, error) {
			found, err := kube.Describe(ctx, s.Operator.Discovery, kind.GVK)
			if err == nil {
				_, _, err = s.Operator.Informers.Get(ctx, kind.GVK, kind.New(), cache.BlockUntilSynced(true))
			}
			if err == nil {
				s.note(kind, nil)
			}
			return found, err
		},
		Waiting: func(err error, _ bool) { s.note(kind, err) },
		Serve: func(ctx context.Context, _ kube.Description) error {
			<-ctx.Done()
			return nil
		},
	}
}

func (s *Standby) note(kind declaration.Watched, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsynced == nil {
		s.unsynced = map[string]string{}
	}
	s.unsynced[kind.GVK.String()] = ""
	if err != nil {
		s.unsynced[kind.GVK.String()] = err.Error()
	}
}

// ready is nil when the objects of every kind are there.
func (s *Standby) ready() error {
	if s == nil {
		return nil // Without an election this is unknown.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	synced := func(kind, name string) error {
		trouble, known := s.unsynced[name]
		switch {
		case !known:
			return fmt.Errorf("%s: its objects are not listed yet", kind)
		case trouble != "":
			return fmt.Errorf("%s: %s", kind, trouble)
		}
		return nil
	}
	for _, kind := range s.kinds() {
		if err := synced(kind.GVK.Kind, kind.GVK.String()); err != nil {
			return err
		}
	}
	switch {
	case len(s.Operator.Selections) == 0:
		return nil
	case s.chooser == nil:
		return selected.ErrUnknownKinds
	default:
		return s.chooser.Ready(synced)
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
