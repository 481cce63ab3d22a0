package kindstore

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/objects"
)

const (
	// moveEvery is how often a watermark may be written, at most.
	moveEvery = time.Minute
	// steadyFor is how long a watch must not have failed before a watermark moves: what it has missed must have arrived.
	steadyFor = time.Minute
	// heldLong is how long one object must hold a watermark back before the log warns about it.
	heldLong = 10 * time.Minute
	// readAgain is how soon the store is read again after a failure.
	readAgain = time.Second
)

// Options are what a State needs to know of its kind.
type Options struct {
	Store kube.KindStore
	// Resource names the kind in the store, with its group.
	Resource string
	// Served are the namespaces that the operator serves. Without namespaces of its own, the kind has one scope.
	Served filter.Namespaces
	// Margin is how old an object must be before a watermark passes it.
	Margin time.Duration
	// BuiltIn: the kind is built in, so its records never move.
	BuiltIn bool
	// Records tells how records of the kind are kept now.
	Records    func() Records
	FirstList  *objects.FirstList
	Health     *kube.WatchHealth
	Namespaces *kube.NamespacedCache
	Log        *slog.Logger
}

// Records is how records of a kind are kept.
type Records struct {
	// OfEveryObject: every object of the kind gets a record. Only then are there watermarks.
	OfEveryObject bool
	// Carrier is where records are written.
	Carrier record.Carrier
}

// State is what is stored about the records of one kind. Make it with New.
type State struct {
	options Options
	// lowered has an element when a stored watermark must be lowered at once.
	lowered chan struct{}
	// storing has an element while places are stored, so that several workers do not store the same. A request can take long, so it is no mutex.
	storing chan struct{}
	// store is where the state is stored. Load removes its namespace if nothing can be stored.
	store kube.KindStore

	// mu guards the fields below.
	mu         sync.Mutex
	watermarks watermarks
	places     places
}

// New returns the state of a kind of which nothing was read.
func New(options Options) *State {
	return &State{
		options: options, lowered: make(chan struct{}, 1), storing: make(chan struct{}, 1), store: options.Store,
		watermarks: watermarks{served: options.Served, margin: options.Margin},
	}
}

// Load reads what the store holds, however long that takes. It returns an error only if the context ends. Without the right to read the store, or a place
// for it, nothing is kept.
func (s *State) Load(ctx context.Context) error {
	if !s.kept() {
		if !s.store.Kept() {
			s.options.Log.Debug("no namespace for watermarks, records lost while the operator is down will not be detected")
		}
		return nil
	}
	retry := time.NewTicker(readAgain)
	defer retry.Stop()
	for {
		stored, err := s.store.Read(ctx, s.options.Resource)
		if err == nil {
			s.take(stored)
			return nil
		}
		s.options.Log.Warn("cannot read the watermarks, records lost while the operator is down will not be detected", "error", err)
		if apierrors.IsForbidden(err) {
			s.store.Place.Namespace = ""
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		}
	}
}

// kept reports whether anything is stored of the kind.
func (s *State) kept() bool {
	return s.store.Kept() && (s.options.Records().OfEveryObject || !s.options.BuiltIn)
}

// take takes up what was read.
func (s *State) take(stored kube.StoredKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.loaded, s.places.stored = !s.options.BuiltIn, stored.Places
	if s.options.Records().OfEveryObject {
		s.watermarks.load(stored.Watermarks)
	}
}

// Run keeps the store up to date until the context ends. Call it after Load.
func (s *State) Run(ctx context.Context) {
	if !s.kept() {
		return
	}
	ticker := time.NewTicker(moveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lowered:
			s.moveAll(ctx, s.lower)
		case <-ticker.C:
			s.forgetNamespaces(ctx)
			s.moveAll(ctx, s.raise)
			s.endMoves(ctx)
		}
	}
}

// known returns the scopes of which anything is known.
func (s *State) known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := append(s.watermarks.known(), s.places.known()...)
	slices.Sort(known)
	return slices.Compact(known)
}

// forgetNamespaces removes what is stored of namespaces that are gone.
func (s *State) forgetNamespaces(ctx context.Context) {
	for _, namespace := range s.known() {
		if namespace == "" || !s.options.Namespaces.Gone(namespace) || !s.forget(namespace) {
			continue
		}
		if err := s.store.Remove(ctx, s.options.Resource, namespace); err != nil {
			s.options.Log.Debug("cannot remove what is stored of a deleted namespace", "namespace", namespace, "error", err)
		}
	}
}

// forget removes what is known of a namespace. It reports whether there was anything in the store.
func (s *State) forget(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	watermark, places := s.watermarks.forget(namespace), s.places.forget(namespace)
	return watermark || places
}

// moveAll stores the watermarks that have moved.
func (s *State) moveAll(ctx context.Context, move func(ctx context.Context, scope string)) {
	if !s.options.Records().OfEveryObject {
		return
	}
	for _, scope := range s.known() {
		if scope == "" || !s.options.Namespaces.Gone(scope) {
			move(ctx, scope)
		}
	}
}

// raise stores the watermark of a scope if it has moved. Before the first list is handled, or while the watch is not steady, it may only be lowered.
func (s *State) raise(ctx context.Context, scope string) {
	if !s.options.FirstList.Complete() || !s.steady(scope) {
		s.lower(ctx, scope)
		return
	}
	s.move(ctx, scope, func(*record.Watermark, time.Time) bool { return true })
	s.mu.Lock()
	by, held := s.watermarks.holds(scope, time.Now())
	s.mu.Unlock()
	if held {
		s.options.Log.Warn("object without a record holds the watermark back, lost records of newer objects will not be detected",
			"object", by.Name, "created", by.Created)
	}
}

// steady reports whether the watch of a scope has not failed for a while.
func (s *State) steady(scope string) bool {
	return s.options.Health.Steady(s.options.Resource, scope, steadyFor)
}

// lower stores the watermark of a scope if it must be lowered.
func (s *State) lower(ctx context.Context, scope string) {
	s.move(ctx, scope, (*record.Watermark).Lowers)
}

// move stores the watermark of a scope if it has moved and may be moved there.
func (s *State) move(ctx context.Context, scope string, may func(*record.Watermark, time.Time) bool) {
	s.mu.Lock()
	watermark, known := s.watermarks.scopes[scope]
	moved, next := false, time.Time{}
	if known {
		next, moved = watermark.Next(time.Now())
		moved = moved && may(watermark, next)
	}
	s.mu.Unlock()
	if !moved {
		return
	}
	if err := s.store.WriteWatermark(ctx, s.options.Resource, scope, next); err != nil {
		s.options.Log.Warn("cannot store the watermark, records lost while the operator is down will not be detected", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watermarks.stored[scope] = next
	watermark.Moved(next)
}
