package kube_test

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// connectionServer is a server whose connections accept requests and do not respond.
type connectionServer struct {
	*httptest.Server

	accepted atomic.Int32
	// dead is how many of the first connections do not respond.
	dead atomic.Int32
}

type connectionNumber struct{}

func newConnectionServer(t *testing.T, http2 bool, handler http.HandlerFunc) *connectionServer {
	t.Helper()
	s := &connectionServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if number, _ := r.Context().Value(connectionNumber{}).(int32); number <= s.dead.Load() {
			<-r.Context().Done()
			// A response could still reach the client while it closes the connection.
			panic(http.ErrAbortHandler)
		}
		handler(w, r)
	}))
	s.EnableHTTP2 = http2
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionNumber{}, s.accepted.Add(1))
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// client returns a client with deadlines and with the connections of client-go.
func (s *connectionServer) client(t *testing.T, limits kube.Deadlines) *http.Client {
	t.Helper()
	config := &rest.Config{Host: s.URL}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	limits.Apply(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// get sends a request and reads the whole response.
func (s *connectionServer) get(t *testing.T, client *http.Client, path string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return nil
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if want := map[bool]int{false: 1, true: 2}[s.EnableHTTP2]; answer.ProtoMajor != want {
		t.Errorf("the protocol is %s, want HTTP/%d", answer.Proto, want)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

const (
	shortTimeout = time.Second
	// longTimeout is never reached.
	longTimeout = 10 * time.Minute
)

// A load balancer can answer the pings of HTTP/2 without forwarding anything. Then the health check of client-go does not help.
func TestAConnectionThatAnswersOnlyPingsIsReplaced(t *testing.T) {
	s := newConnectionServer(t, true, func(http.ResponseWriter, *http.Request) {})
	s.dead.Store(1)
	client := s.client(t, kube.Deadlines{Request: shortTimeout, Silence: longTimeout})
	s.failsAtMost(t, client, 2)
}

// failsAtMost checks that a request is answered after at most so many failures.
func (s *connectionServer) failsAtMost(t *testing.T, client *http.Client, most int) {
	t.Helper()
	for range most {
		err := s.get(t, client, widgetPath)
		if err == nil {
			return
		}
		unanswered(t, err)
	}
	if err := s.get(t, client, widgetPath); err != nil {
		t.Errorf("request %d, over %d connections: %v", most+1, s.accepted.Load(), err)
	}
}

// Other watches keep the connection open, so that it is not closed as idle.
func TestTheConnectionOfASilentWatchIsReplaced(t *testing.T) {
	opened := make(chan struct{}, 2)
	s := newConnectionServer(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush()
			opened <- struct{}{}
			<-r.Context().Done()
		}
	})
	client := s.client(t, kube.Deadlines{Request: shortTimeout, Silence: shortTimeout})
	other := s.client(t, kube.Deadlines{Request: shortTimeout, Silence: longTimeout})
	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+widgetsWatch, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	watches.Go(func() {
		answer, err := other.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, answer.Body)
	})
	<-opened
	watches.Go(func() {
		if err := s.get(t, client, widgetsWatch); err != nil {
			t.Error(err)
		}
		if n := s.accepted.Load(); n != 1 {
			t.Errorf("%d connections before the watch ended, want 1", n)
		}
		s.failsAtMost(t, client, 1)
		cancel()
	})
	<-opened
	s.dead.Store(1)
	watches.Wait()
}

// The pool of HTTP/1.1 has one connection for each concurrent request.
func TestOneDeadlineIsEnoughForAPoolOfDeadConnections(t *testing.T) {
	const pooled = 3
	var together sync.WaitGroup
	together.Add(pooled)
	s := newConnectionServer(t, false, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			together.Done()
			together.Wait()
		}
	})
	client := s.client(t, kube.Deadlines{Request: shortTimeout, Silence: longTimeout})
	filler := s.client(t, kube.Deadlines{Request: longTimeout, Silence: longTimeout})
	var fill sync.WaitGroup
	for range pooled {
		fill.Go(func() {
			if err := s.get(t, filler, "/version"); err != nil {
				t.Error(err)
			}
		})
	}
	fill.Wait()
	s.dead.Store(pooled)
	unanswered(t, s.get(t, client, widgetPath))
	if err := s.get(t, client, widgetPath); err != nil {
		t.Errorf("the second request: %v", err)
	}
	if n := s.accepted.Load(); n != pooled+1 {
		t.Errorf("%d connections, want %d", n, pooled+1)
	}
}
