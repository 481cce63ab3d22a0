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

// Streams knows how the watches of a process fare, each by what it watches. It sees the requests; what is refused is tried
// again by those who watch.
type Streams struct {
	// Noted is called for each answer, with what is wrong with it, "" for nothing. The namespace is "" for all. Nil is nobody.
	Noted func(resource, namespace, complaint string)
	// Spare is a resource whose watch may be refused, "" for none.
	Spare string

	// begun yields after a watch has begun.
	begun chan struct{}

	mu    sync.Mutex
	known map[string]trouble // by resource, and namespace if the watch is of one
}

// NewStreams makes one that calls noted for each answer.
func NewStreams(noted func(resource, namespace, complaint string)) *Streams {
	return &Streams{Noted: noted, begun: make(chan struct{}, 1)}
}

// Begun yields after watches have begun, or begun again; never where nobody knows. It is for one listener.
func (s *Streams) Begun() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.begun
}

// trouble is what is wrong with a watch, and since when; the zero value for nothing.
type trouble struct {
	since time.Time
	what  string
	// refused: for want of a right. over is when the last trouble ended.
	refused bool
	over    time.Time
}

func (t trouble) lasts() bool { return !t.since.IsZero() }

// Follow lets requests pass, and notes what becomes of watches, and of the lists that replace one.
func (s *Streams) Follow(next http.RoundTripper) http.RoundTripper {
	return following{streams: s, next: next}
}

type following struct {
	streams *Streams
	next    http.RoundTripper
}

// RoundTrip sends a request.
func (f following) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := f.next.RoundTrip(request)
	if request.Context().Value(ownWatch{}) != nil {
		return answer, err
	}
	collection, watch := collectionOf(request.URL.Path), request.URL.Query().Get("watch")
	if watches := watch == "true" || watch == "1"; request.Method == http.MethodGet && collection != "" && (watches || f.streams.knows(collection)) {
		f.streams.note(collection, complaint(answer, err), err == nil && answer.StatusCode == http.StatusForbidden)
		if watches && err == nil && answer.StatusCode == http.StatusOK {
			f.streams.tellBegun()
		}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find what is within.
func (f following) WrappedRoundTripper() http.RoundTripper { return f.next }

// knows tells whether somebody watches the collection.
func (s *Streams) knows(collection string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[collection]
	return known
}

func (s *Streams) tellBegun() {
	select {
	case s.begun <- struct{}{}:
	default: // The one before was not heard yet, or nobody listens.
	}
}

func (s *Streams) note(collection, what string, refused bool) {
	s.record(collection, what, refused)
	if s.Noted != nil {
		resource, namespace := placeOf(collection)
		s.Noted(resource, namespace, what)
	}
}

// placeOf is what is watched, and where: in the namespace, or in all if that is "".
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

// complaint is what is wrong with an answer; "" for nothing. That a watch begins too far back is not: it begins anew.
func complaint(answer *http.Response, err error) string {
	switch {
	case errors.Is(err, context.Canceled): // Nobody wants to know.
		return ""
	case err != nil:
		return err.Error()
	case answer.StatusCode >= http.StatusBadRequest && answer.StatusCode != http.StatusGone:
		return answer.Status
	default:
		return ""
	}
}

func (s *Streams) record(collection, what string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]trouble{}
	}
	before := s.known[collection]
	switch {
	case what != "":
		since := before.since
		if !before.lasts() {
			since = time.Now()
		}
		s.known[collection] = trouble{since: since, what: what, refused: refused}
	case before.lasts():
		s.known[collection] = trouble{over: time.Now()}
	default:
		s.known[collection] = before
	}
}

// Trouble names a watch that has failed for longer than some time; nil for none. One that may not be watched in a namespace is
// no trouble as long as it is watched in another.
func (s *Streams) Trouble(longer time.Duration) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, collection := range slices.Sorted(maps.Keys(s.known)) {
		found := s.known[collection]
		if lasts := time.Since(found.since); found.lasts() && lasts > longer && !s.sparedLocked(collection) {
			return fmt.Errorf("the watch of %s has failed for %s: %s", collection, lasts.Round(time.Second), found.what)
		}
	}
	return nil
}

// sparedLocked tells whether the operator does without a watch that is refused.
func (s *Streams) sparedLocked(collection string) bool {
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

// Steady tells whether a watch, of all namespaces if that is "", has not failed for some time. Where nobody knows it has not.
func (s *Streams) Steady(resource, namespace string, longer time.Duration) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.known[collectionAt(resource, namespace)]
	return known && !found.lasts() && (found.over.IsZero() || time.Since(found.over) > longer)
}

// Forget forgets the watches of a resource, such as widgets.example.com, which nobody watches any more.
func (s *Streams) Forget(resource string) {
	s.forget(func(name, _ string) bool { return name == resource })
}

// ForgetNamespace forgets the watches in a namespace that is gone, and returns what they were of.
func (s *Streams) ForgetNamespace(namespace string) []string {
	return s.forget(func(_, where string) bool { return where == namespace })
}

func (s *Streams) forget(whether func(resource, namespace string) bool) (forgotten []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(collection string, _ trouble) bool {
		resource, namespace := placeOf(collection)
		forget := whether(resource, namespace)
		if forget {
			forgotten = append(forgotten, resource)
		}
		return forget
	})
	return forgotten
}

// collectionOf names the collection that a path is of: its resource with its group, and the namespace if it is of one. It is
// "" for the path of a single object, and for others.
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
