package simulation

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// Request is one request of an operator, named so that it can be found again in another run: the nth of its kind to
// its object.
type Request struct {
	Method, Path string
	N            int
}

// String is the name: PATCH /apis/…/widgets/one/status #2.
func (r Request) String() string { return fmt.Sprintf("%s %s #%d", r.Method, r.Path, r.N) }

// Write tells whether the request changes something.
func (r Request) Write() bool { return r.Method != http.MethodGet }

// Stop is where a process crashes: at a request, before it is sent or after it was answered, with the answer lost.
type Stop struct {
	At    Request
	After bool
}

// String names the crash.
func (s Stop) String() string {
	if s.After {
		return "crash after " + s.At.String() + ", its answer lost"
	}
	return "crash before " + s.At.String()
}

// gate is the connection of one process to the API server.
type gate struct {
	server *apiserver.Server
	stop   *Stop
	lag    time.Duration
	died   chan struct{}

	mu     sync.Mutex
	seen   []Request
	counts map[Request]int
	isDead bool
}

func newGate(server *apiserver.Server, stop *Stop) *gate {
	return &gate{server: server, stop: stop, died: make(chan struct{}), counts: map[Request]int{}}
}

func (g *gate) dead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isDead
}

func (g *gate) requests() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Request(nil), g.seen...)
}

// before puts the gate in front of a transport.
func (g *gate) before(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		at, counted := g.count(r)
		switch {
		case g.dead():
			return nil, apiserver.ErrConnection
		case counted && g.stop != nil && g.stop.At == at && !g.stop.After:
			g.die()
			return nil, apiserver.ErrConnection
		}
		answer, err := next.RoundTrip(r)
		if err == nil && g.lag > 0 && r.URL.Query().Get("watch") != "" {
			answer.Body = newLagging(answer.Body, g.lag)
		}
		if counted && g.stop != nil && g.stop.At == at {
			g.die()
			return nil, apiserver.ErrConnection
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// count names the request. Lists, watches and discovery are no points of their own: they are the reader's business.
func (g *gate) count(r *http.Request) (Request, bool) {
	found := Request{Method: r.Method, Path: r.URL.Path}
	if !found.Write() && !strings.Contains(found.Path, "/namespaces/") {
		return found, false
	}
	if r.URL.Query().Get("watch") != "" {
		return found, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[found]++
	found.N = g.counts[found]
	if !g.isDead {
		g.seen = append(g.seen, found)
	}
	return found, true
}

// die ends the process: nothing it sends from now on arrives, and its watches break.
func (g *gate) die() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDead {
		return
	}
	g.isDead = true
	close(g.died)
	g.server.SeverWatches()
}
