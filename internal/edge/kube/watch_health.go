package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// WatchHealth tracks the health of the watches of a process, by what they watch. It observes the requests; the informers retry failed ones.
type WatchHealth struct {
	// Noted is called for each response, with what is wrong with it, or "". The namespace is "" for all namespaces. Noted may be nil.
	Noted func(resource, namespace, failure string)
	// Spare is a resource whose watch may be forbidden, or "".
	Spare string

	// begun receives a value after a watch has started.
	begun chan struct{}

	mu    sync.Mutex
	known map[string]watchFailure // by resource, and by namespace if the watch is limited to one
}

// NewWatchHealth returns a WatchHealth that calls noted for each response.
func NewWatchHealth(noted func(resource, namespace, failure string)) *WatchHealth {
	return &WatchHealth{Noted: noted, begun: make(chan struct{}, 1)}
}

// Begun returns a channel that receives a value after watches have started or restarted. It is nil if s is nil. There may be one listener.
func (s *WatchHealth) Begun() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.begun
}

// watchFailure describes what is wrong with a watch and since when. The zero value means nothing.
type watchFailure struct {
	since time.Time
	what  string
	// refused means that the watch is forbidden. over is when the last failure ended.
	refused bool
	over    time.Time
}

func (f watchFailure) lasts() bool { return !f.since.IsZero() }

// Follow returns a transport that observes watches, and lists of the same collections.
func (s *WatchHealth) Follow(next http.RoundTripper) http.RoundTripper {
	return watchObserver{health: s, next: next}
}

type watchObserver struct {
	health *WatchHealth
	next   http.RoundTripper
}

// RoundTrip sends a request.
func (f watchObserver) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := f.next.RoundTrip(request)
	if request.Context().Value(ownWatch{}) != nil {
		return answer, err
	}
	collection, watch := collectionOf(request.URL.Path), request.URL.Query().Get("watch")
	if watches := watch == "true" || watch == "1"; request.Method == http.MethodGet && collection != "" && (watches || f.health.knows(collection)) {
		f.health.note(collection, failureOf(answer, err), err == nil && answer.StatusCode == http.StatusForbidden)
		if watches && err == nil && answer.StatusCode == http.StatusOK {
			f.health.signalBegun()
		}
	}
	return answer, err
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (f watchObserver) WrappedRoundTripper() http.RoundTripper { return f.next }

// knows reports whether the collection is watched.
func (s *WatchHealth) knows(collection string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[collection]
	return known
}

func (s *WatchHealth) signalBegun() {
	select {
	case s.begun <- struct{}{}:
	default: // The previous value has not been received yet.
	}
}

func (s *WatchHealth) note(collection, what string, refused bool) {
	s.record(collection, what, refused)
	if s.Noted != nil {
		resource, namespace := placeOf(collection)
		s.Noted(resource, namespace, what)
	}
}

// placeOf returns the watched resource and namespace, which is "" for all namespaces.
func placeOf(collection string) (resource, namespace string) {
	resource, namespace, _ = strings.Cut(collection, inNamespace)
	return resource, namespace
}

const inNamespace = " in "

func collectionAt(resource, namespace string) string {
	if namespace == "" {
		return resource
	}
	return resource + inNamespace + namespace
}

// failureOf returns what is wrong with a response, or "". A watch from an expired resource version is normal: it starts again.
func failureOf(answer *http.Response, err error) string {
	switch {
	case errors.Is(err, context.Canceled): // The caller has given up.
		return ""
	case err != nil:
		return err.Error()
	case answer.StatusCode >= http.StatusBadRequest && answer.StatusCode != http.StatusGone:
		return answer.Status
	default:
		return ""
	}
}

func (s *WatchHealth) record(collection, what string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]watchFailure{}
	}
	before := s.known[collection]
	switch {
	case what != "":
		since := before.since
		if !before.lasts() {
			since = time.Now()
		}
		s.known[collection] = watchFailure{since: since, what: what, refused: refused}
	case before.lasts():
		s.known[collection] = watchFailure{over: time.Now()}
	default:
		s.known[collection] = before
	}
}

// Failure returns an error that names a watch that has been failing for longer than the given time, or nil. A watch that is forbidden in
// a namespace does not count while the same resource is watched in another.
func (s *WatchHealth) Failure(longer time.Duration) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, collection := range slices.Sorted(maps.Keys(s.known)) {
		found := s.known[collection]
		if lasts := time.Since(found.since); found.lasts() && lasts > longer && !s.sparedLocked(collection) {
			return fmt.Errorf("watch of %s has been failing for %s: %s", collection, lasts.Round(time.Second), found.what)
		}
	}
	return nil
}

// sparedLocked reports whether a watch is forbidden that the operator does not depend on.
func (s *WatchHealth) sparedLocked(collection string) bool {
	resource, namespace := placeOf(collection)
	if !s.known[collection].refused {
		return false
	}
	if namespace == "" {
		return resource == s.Spare
	}
	for other, found := range s.known {
		if name, elsewhere := placeOf(other); name == resource && elsewhere != "" && !found.lasts() {
			return true
		}
	}
	return false
}

// Steady reports whether a watch has been working for longer than the given time. The namespace is "" for all namespaces. It returns true
// if s is nil.
func (s *WatchHealth) Steady(resource, namespace string, longer time.Duration) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.known[collectionAt(resource, namespace)]
	return known && !found.lasts() && (found.over.IsZero() || time.Since(found.over) > longer)
}

// Forget forgets the watches of a resource that is not watched any more, such as widgets.example.com.
func (s *WatchHealth) Forget(resource string) {
	s.forget(func(name, _ string) bool { return name == resource })
}

// ForgetNamespace forgets the watches in a deleted namespace, and returns their resources.
func (s *WatchHealth) ForgetNamespace(namespace string) []string {
	return s.forget(func(_, where string) bool { return where == namespace })
}

func (s *WatchHealth) forget(whether func(resource, namespace string) bool) (forgotten []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(collection string, _ watchFailure) bool {
		resource, namespace := placeOf(collection)
		forget := whether(resource, namespace)
		if forget {
			forgotten = append(forgotten, resource)
		}
		return forget
	})
	return forgotten
}

// collectionOf returns the collection that a path names: the resource with its group, and the namespace if there is one. It returns ""
// for the path of a single object and for all other paths.
func collectionOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return ""
	}
	namespace := ""
	if len(parts) == 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 1 {
		return ""
	}
	return collectionAt(strings.TrimSuffix(parts[0]+"."+group, "."), namespace)
}
