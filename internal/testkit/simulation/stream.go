package simulation

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// expired is how an API server says that a watch is too old to go on.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// frame is one event of a watch, and when it arrived.
type frame struct {
	text []byte
	at   time.Time
}

// stream is the connection of a watch, on which events arrive late, twice, or not at all.
type stream struct {
	world    *World
	resource string
	skew     time.Duration
	source   io.ReadCloser
	arriving chan frame
	once     sync.Once
	closed   chan struct{}
	// ready are the events to be read next, left is what of the first was not read yet.
	ready []frame
	left  []byte
	over  bool
}

// watch opens a watch for the process.
func (p *Process) watch(r *http.Request, next http.RoundTripper, resource string) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	s := &stream{
		world: p.world, resource: resource, skew: p.skew, source: answer.Body,
		arriving: make(chan frame, 1), closed: make(chan struct{}),
	}
	p.mu.Lock()
	if p.end.Kind == "" {
		p.lines[s] = struct{}{}
	} else {
		s.sever()
	}
	p.mu.Unlock()
	p.joined.Go(s.receive)
	answer.Body = s
	return answer, nil
}

// receive takes events from the API server until the stream ends.
func (s *stream) receive() {
	defer close(s.arriving)
	lines := bufio.NewReader(s.source)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		select {
		case s.arriving <- frame{text: text, at: time.Now()}:
		case <-s.closed:
			return
		}
	}
}

// Read hands on what has arrived.
func (s *stream) Read(into []byte) (int, error) {
	for len(s.left) == 0 {
		if len(s.ready) > 0 {
			s.left, s.ready = s.ready[0].text, s.ready[1:]
			continue
		}
		if s.over {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(into, s.left)
	s.left = s.left[n:]
	return n, nil
}

// next waits for one event, and decides what becomes of it.
func (s *stream) next() error {
	event, err := s.take(nil)
	if err != nil {
		return err
	}
	if stale := s.world.setup.Schedule.staleBy(); stale > 0 && !s.wait(time.Until(event.at.Add(stale))) {
		return apiserver.ErrConnection
	}
	event.text = shiftTimes(event.text, -s.skew)
	s.ready = append(s.ready, event)
	name, counts := objectOf(event.text)
	if !counts || s.resource == "" {
		return nil
	}
	for _, fault := range s.world.told(s.resource) {
		switch fault.Kind { //nolint:exhaustive // The others are no faults of events.
		case EventDoubled:
			s.ready = append(s.ready, event)
		case EventLost:
			s.ready, s.over = []frame{{text: []byte(expired)}}, true
		case EventsSwapped:
			s.swap(name)
		}
	}
	return nil
}

// swap tells the next event first, if it comes soon and is of another object: those of one object stay in order.
func (s *stream) swap(name string) {
	soon := time.NewTimer(swapPatience)
	defer soon.Stop()
	second, err := s.take(soon.C)
	if err != nil || second.text == nil {
		return
	}
	if other, counts := objectOf(second.text); counts && other != name {
		s.ready = append([]frame{second}, s.ready...)
		return
	}
	s.ready = append(s.ready, second)
}

// take waits for an event from the API server. There is none when the time is over.
func (s *stream) take(until <-chan time.Time) (frame, error) {
	select {
	case event, open := <-s.arriving:
		if !open {
			return frame{}, io.EOF
		}
		return event, nil
	case <-until:
		return frame{}, nil
	case <-s.closed:
		return frame{}, apiserver.ErrConnection
	}
}

func (s *stream) wait(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return true
	case <-s.closed:
		return false
	}
}

// sever breaks the connection.
func (s *stream) sever() {
	s.once.Do(func() { close(s.closed) })
	_ = s.source.Close()
}

// Close ends the stream.
func (s *stream) Close() error {
	s.sever()
	return nil
}

// objectOf names the object of an event; false for bookmarks and errors.
func objectOf(event []byte) (string, bool) {
	var told struct {
		Type   string
		Object struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if json.Unmarshal(event, &told) != nil || told.Type == "BOOKMARK" || told.Type == "ERROR" {
		return "", false
	}
	return told.Object.Metadata.Namespace + "/" + told.Object.Metadata.Name, true
}
