package kindstore

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// BeginMove stores that records of the objects in a namespace go to this carrier from now on. Call it before the first record is written there. Hidden means
// that the status may hold records that this release cannot see. Without the right to store that, it logs a warning once, and the record may be written.
func (s *State) BeginMove(ctx context.Context, namespace string, to record.Carrier, hidden bool) error {
	select {
	case s.storing <- struct{}{}:
		defer func() { <-s.storing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	scope := s.watermarks.scopeOf(namespace)
	next, differs := s.places.next(scope, to, hidden)
	s.mu.Unlock()
	if !differs {
		return nil
	}
	err := s.storePlaces(ctx, map[string]record.Places{scope: next})
	if !apierrors.IsForbidden(err) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.loaded = false
	s.options.Log.Warn("cannot store where records are, a later release that keeps them elsewhere will not use what steps and effects returned", "error", err)
	return nil
}

// CarrierChanged notes that the preferred carrier has changed. No reconciliation has looked into the new one, so only a later process can tell when all
// records have moved.
func (s *State) CarrierChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.changed = true
}

// endMoves stores for each scope in which all records are in the status that annotations do not count any more.
func (s *State) endMoves(ctx context.Context) {
	if !s.options.FirstList.AllDone() || s.options.Records().Carrier != record.Status {
		return
	}
	s.mu.Lock()
	end := s.places.endable(s.steady)
	s.mu.Unlock()
	if len(end) == 0 {
		return
	}
	if err := s.storePlaces(ctx, end); err != nil {
		s.options.Log.Warn("cannot store that all records are in the status, records that others write into annotations can be taken for those of an earlier release",
			"error", err)
	}
}

// storePlaces stores places, and then uses them.
func (s *State) storePlaces(ctx context.Context, places map[string]record.Places) error {
	if err := s.store.WritePlaces(ctx, s.options.Resource, places); err != nil {
		return err //nolint:wrapcheck // It names the ConfigMap.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.keep(places)
	return nil
}
