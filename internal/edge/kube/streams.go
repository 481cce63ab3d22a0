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
	// Noted is called for each answer, with what is wrong with it, "" for nothing. Nil is nobody.
	Noted func(resource, complaint string)

	mu    sync.Mutex
	known map[string]trouble // by resource, and namespace if the watch is of one
}

// trouble is what is wrong with a watch, and since when; the zero value for nothing.
type trouble struct {
	since time.Time
	what  string
}

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
	collection, watch := collectionOf(request.URL.Path), request.URL.Query().Get("watch")
	if request.Method == http.MethodGet && collection != "" && (watch == "true" || watch == "1" || f.streams.knows(collection)) {
		f.streams.note(collection, complaint(answer, err))
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

func (s *Streams) note(collection, what string) {
	s.record(collection, what)
	if s.Noted != nil {
		resource, _, _ := strings.Cut(collection, " ")
		s.Noted(resource, what)
	}
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

func (s *Streams) record(collection, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]trouble{}
	}
	if what == "" {
		s.known[collection] = trouble{}
		return
	}
	since := s.known[collection].since
	if since.IsZero() {
		since = time.Now()
	}
	s.known[collection] = trouble{since: since, what: what}
}

// Trouble names a watch that has failed for longer than some time; nil for none.
func (s *Streams) Trouble(longer time.Duration) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, collection := range slices.Sorted(maps.Keys(s.known)) {
		found := s.known[collection]
		if lasts := time.Since(found.since); !found.since.IsZero() && lasts > longer {
			return fmt.Errorf("the watch of %s has failed for %s: %s", collection, lasts.Round(time.Second), found.what)
		}
	}
	return nil
}

// Forget forgets the watches of a resource, such as widgets.example.com, which nobody watches any more.
func (s *Streams) Forget(resource string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(collection string, _ trouble) bool {
		name, _, _ := strings.Cut(collection, " ")
		return name == resource
	})
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
	resource := strings.TrimSuffix(parts[0]+"."+group, ".")
	if namespace == "" {
		return resource
	}
	return resource + " in " + namespace
}
