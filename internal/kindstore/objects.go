package kindstore

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// Object is an object of the kind.
type Object struct {
	Namespace, UID string
	// Name is its namespace and name, for people.
	Name    string
	Created time.Time
}

// SetNarrow sets whether the cache is limited to some namespaces although all are served. Then each namespace has a watermark of its own: one for all
// namespaces would cover objects that this process cannot see.
func (s *State) SetNarrow(narrow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watermarks.narrow = narrow // mutant: narrow-cache
}

// with calls the function with the watermark of a namespace, under the lock. Where no watermarks are kept, it does nothing.
func (s *State) with(namespace string, use func(*record.Watermark)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watermark := s.watermarks.of(namespace); watermark != nil {
		use(watermark)
	}
}

// Missing notes that an object has no record. It holds the watermark back until it has one.
func (s *State) Missing(one Object) {
	s.with(one.Namespace, func(scope *record.Watermark) { scope.Missing(one.UID, one.Name, one.Created) })
}

// Arrived notes that the watch has delivered a new object, which has no record. If the stored watermark covers the object, it is lowered at once.
func (s *State) Arrived(one Object) {
	late := false
	s.with(one.Namespace, func(scope *record.Watermark) {
		late = scope.Arrived(one.UID, one.Name, one.Created) // mutant: arrival-unnoticed
	})
	if late {
		select {
		case s.lowered <- struct{}{}:
		default: // One signal is enough.
		}
	}
}

// Recorded notes that an object has a record.
func (s *State) Recorded(one Object) {
	s.with(one.Namespace, func(scope *record.Watermark) { scope.Recorded(one.UID, one.Created) })
}

// Gone notes that an object will never have a record: it is gone, or is being deleted.
func (s *State) Gone(namespace, uid string) {
	s.with(namespace, func(scope *record.Watermark) { scope.Gone(uid) })
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places.unmoved, uid)
}

// Covers reports whether an object must have had a record. It holds only for objects that this process has not seen arrive.
func (s *State) Covers(one Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watermarks.covers(one.Namespace, one.Created)
}

// Found is where the record of an object is. The zero value means that the object has none.
type Found struct {
	// Found means that it was read, Unmoved that it may be in the other carrier.
	Found, Unmoved bool
}

// Note notes where the record of an object is.
func (s *State) Note(namespace, uid string, at Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.found(s.watermarks.scopeOf(namespace), uid, at)
}

// Former returns when a record is read that is not in the preferred carrier.
func (s *State) Former(namespace string, preferred record.Carrier) record.Former {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places.of(s.watermarks.scopeOf(namespace), preferred).Former(preferred)
}
