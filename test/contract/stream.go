package contract

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// event is what a watch tells.
type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// stream is an open watch.
type stream struct {
	w      *world
	events chan event
	cancel context.CancelFunc
}

// maxEvent is the longest event that is read.
const maxEvent = 4 << 20

// watch opens a watch, which ends with the test.
func (t target) watch(pairs ...string) *stream {
	t.w.Helper()
	ctx, cancel := context.WithCancel(t.w.Context())
	c := call{method: http.MethodGet, path: t.collection(), query: query(append([]string{"watch", "true"}, pairs...)...), accept: t.accept}
	response, err := t.w.http.Do(t.w.request(ctx, c)) //nolint:bodyclose // It is closed where it is read to its end.
	if err != nil {
		t.w.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		t.w.Fatalf("watch %s: %d %s %v", c.path, response.StatusCode, body, err)
	}
	s := &stream{w: t.w, events: make(chan event), cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, maxEvent)
		for lines.Scan() {
			var told event
			if err := utiljson.Unmarshal(lines.Bytes(), &told); err != nil {
				told = event{Type: "UNREADABLE", Object: object{"text": lines.Text(), "error": fmt.Sprint(err)}}
			}
			select {
			case s.events <- told:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.w.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

var errEnded = errors.New("the watch has ended")

// next waits for the next event.
func (s *stream) next() (event, error) {
	s.w.Helper()
	select {
	case told, more := <-s.events:
		if !more {
			return event{}, errEnded
		}
		return told, nil
	case <-time.After(patience):
		return event{}, fmt.Errorf("no event within %s", patience)
	}
}

// want checks the next event.
func (s *stream) want(kind, name string) object {
	s.w.Helper()
	told, err := s.next()
	if err != nil {
		s.w.Fatalf("%v, want %s of %s", err, kind, name)
	}
	if got := told.Object.text("metadata.name"); told.Type != kind || got != name {
		s.w.Fatalf("the watch tells %s of %s, want %s of %s", told.Type, got, kind, name)
	}
	return told.Object
}

// ends checks that the watch ends, whatever it still tells.
func (s *stream) ends() {
	s.w.Helper()
	for {
		switch _, err := s.next(); {
		case errors.Is(err, errEnded):
			return
		case err != nil:
			s.w.Fatal("the watch does not end")
		}
	}
}
