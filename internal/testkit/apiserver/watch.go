package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// How long a watch lasts if the client does not say, and how long before its end the last bookmark comes.
const (
	watchTimeout = 30 * time.Minute
	lastBookmark = 2 * time.Second
)

// stream is one watch.
type stream struct {
	server  *Server
	request *request
	chosen  selection
	options *internalversion.ListOptions
	watcher *store.Watcher
	encoder *json.Encoder
	flush   func()
	// seen is the revision that the client knows of.
	seen int64
}

func (s *Server) watch(w http.ResponseWriter, q *request) error {
	options, err := optionsOf(q.query)
	if err != nil {
		return err
	}
	watched := &stream{server: s, request: q, options: options, flush: func() {}, encoder: json.NewEncoder(w)}
	if watched.chosen, err = selectionOf(q, options); err != nil {
		return err
	}
	if flusher, can := w.(http.Flusher); can {
		watched.flush = flusher.Flush
	}
	first, err := watched.open()
	if err != nil && !errors.Is(err, store.ErrTooOld) {
		return err
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusOK)
	watched.flush()
	if err != nil {
		watched.fail(err)
		return nil
	}
	defer watched.watcher.Stop()
	// Whatever fails from here on is a connection that is gone.
	_ = watched.run(q.Context(), first)
	return nil
}

// open starts to watch, and returns what the client is to be told first.
func (s *stream) open() ([]*unstructured.Unstructured, error) {
	after, err := revisionOf(s.options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	initial := s.options.SendInitialEvents != nil && *s.options.SendInitialEvents
	legacy := s.options.SendInitialEvents == nil && after == 0
	var first []*unstructured.Unstructured
	err = s.server.store.Do(func(tx *store.Tx) error {
		if initial || legacy {
			if err := notAhead(after, tx.Revision()); err != nil {
				return err
			}
			first = s.chosen.list(tx)
			after = tx.Revision()
		}
		if after == 0 {
			after = tx.Revision()
		}
		var err error
		s.seen = after
		if s.watcher, err = tx.Watch(s.request.kind.Resource(), after); err != nil {
			return fmt.Errorf("%w: %d (%d)", err, after, tx.Oldest())
		}
		return nil
	})
	return first, err
}

// run tells the client of changes until one of the two has enough.
func (s *stream) run(ctx context.Context, first []*unstructured.Unstructured) error {
	lasts := watchTimeout
	if s.options.TimeoutSeconds != nil && *s.options.TimeoutSeconds > 0 {
		lasts = time.Duration(*s.options.TimeoutSeconds) * time.Second
	}
	end := time.NewTimer(lasts)
	defer end.Stop()
	bookmarks, stop := s.bookmarks(lasts)
	defer stop()
	if err := s.begin(first); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.server.ctx.Done():
			return nil
		case <-end.C:
			return nil
		case <-bookmarks:
			if err := s.mark(false); err != nil {
				return err
			}
		case <-s.watcher.Wake():
			if ended, err := s.drain(); ended || err != nil {
				return err
			}
		}
		s.flush()
	}
}

// bookmarks ticks when a bookmark is due: shortly before the end.
func (s *stream) bookmarks(lasts time.Duration) (due <-chan time.Time, stop func()) {
	if !s.options.AllowWatchBookmarks {
		return nil, func() {}
	}
	before := lasts - lastBookmark
	if before <= 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(before)
	return timer.C, func() { timer.Stop() }
}

func (s *stream) begin(first []*unstructured.Unstructured) error {
	for _, object := range first {
		if err := s.send(watch.Added, s.request.form.apply(object)); err != nil {
			return err
		}
	}
	if s.options.SendInitialEvents != nil && *s.options.SendInitialEvents && s.options.AllowWatchBookmarks {
		if err := s.mark(true); err != nil {
			return err
		}
	}
	s.flush()
	return nil
}

// drain tells of everything that has happened.
func (s *stream) drain() (ended bool, err error) {
	changes, ended, reason := s.watcher.Take()
	for _, change := range changes {
		if err := s.tell(change); err != nil {
			return true, err
		}
		s.seen = change.Revision
	}
	if ended && reason != nil {
		s.fail(reason)
	}
	return ended, nil
}

// tell sends a change as it looks to this client: what begins to match is added, what ceases to match is deleted.
func (s *stream) tell(change store.Change) error {
	object := view(s.request.kind, change.Object)
	matches := change.Type != watch.Deleted && s.chosen.matches(object)
	matched := change.Before != nil && s.chosen.matches(view(s.request.kind, change.Before))
	switch {
	case matches && matched:
		return s.send(watch.Modified, s.request.form.apply(object))
	case matches:
		return s.send(watch.Added, s.request.form.apply(object))
	case matched:
		last := view(s.request.kind, change.Before).DeepCopy()
		last.SetResourceVersion(strconv.FormatInt(change.Revision, 10))
		return s.send(watch.Deleted, s.request.form.apply(last))
	}
	return nil
}

// mark sends a bookmark: the client has seen everything up to here.
func (s *stream) mark(initialEnd bool) error { //nolint:revive // The two bookmarks differ by an annotation.
	bookmark := s.request.kind.New()
	bookmark.SetResourceVersion(strconv.FormatInt(s.current(), 10))
	if initialEnd {
		bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return s.send(watch.Bookmark, s.request.form.apply(bookmark))
}

// current is the newest revision that the client has seen all of: that of the store, if nothing waits to be told.
func (s *stream) current() int64 {
	_ = s.server.store.Do(func(tx *store.Tx) error {
		if !s.watcher.Waiting() {
			s.seen = max(s.seen, tx.Revision())
		}
		return nil
	})
	return s.seen
}

func (s *stream) fail(reason error) {
	gone := apierrors.NewResourceExpired(reason.Error())
	_ = s.send(watch.Error, statusOf(gone)) // The client may be gone.
	s.flush()
}

func (s *stream) send(what watch.EventType, object any) error {
	return s.encoder.Encode(map[string]any{"type": what, "object": object})
}
