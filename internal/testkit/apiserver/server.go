package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// defaultHistory is how many changes a server remembers at least, unless an option says otherwise.
const defaultHistory = 10000

// Server is the API server. It is an http.Handler; in-process clients use its Config.
type Server struct {
	store   *store.Store
	kinds   *registry
	history int
	// furnished tells that namespaces get what a controller manager creates in them.
	furnished bool
	// unchecked are the paths of fields that are accepted without being checked.
	unchecked []string
	// clock is what objects are stamped with; nil is the clock of the process.
	clock func() time.Time
	// definitions are what is served from the start; definitions made later are compiled with them.
	definitions *Definitions
	collector   *collector

	ctx     context.Context //nolint:containedctx // It is the lifetime of the server, which every request shares.
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	interceptors []*Interceptor
	pipes        map[*pipe]struct{}
}

// Interceptor stands between a client and the server: it may refuse a request, delay it, count it, or let it through to
// next. A panic with http.ErrAbortHandler drops the answer: the client sees a broken connection.
type Interceptor func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Option changes how a server behaves.
type Option func(*Server) error

// WithDefinitions makes the server serve the kinds of CustomResourceDefinitions from the start.
func WithDefinitions(definitions *Definitions) Option {
	return func(s *Server) error {
		s.definitions = definitions
		return nil
	}
}

// WithHistory makes the server remember at least so many changes: a watch from before them is refused with 410.
func WithHistory(changes int) Option {
	return func(s *Server) error {
		s.history = changes
		return nil
	}
}

// New starts a server that has nothing but the namespaces every cluster has. Close it when it is not used any more.
func New(options ...Option) (*Server, error) {
	s := &Server{
		history:     defaultHistory,
		definitions: &Definitions{},
		kinds:       &registry{},
		pipes:       map[*pipe]struct{}{},
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("start the API server: %w", err)
		}
	}
	builtins, err := s.definitions.compiler.Builtins()
	if err != nil {
		return nil, err
	}
	if err := s.knowUnchecked(builtins); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	s.kinds.add(builtins)
	s.store = store.New(s.history)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.collector = newCollector(s)
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if err := s.makeNamespace(namespace); err != nil {
			return nil, err
		}
	}
	if err := s.definitions.install(s); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	s.running.Go(func() { s.collector.run(s.ctx) })
	return s, nil
}

// Close ends all requests and waits for what the server does in the background. Requests made later are refused.
func (s *Server) Close() {
	s.cancel()
	s.store.End(nil)
	s.running.Wait()
}

// Config lets clients in this process reach the server, without a socket and without a limit to their rate.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host:          "http://mem",
		Transport:     &transport{server: s},
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// Intercept puts an interceptor in front of those that are there, until it is removed.
func (s *Server) Intercept(interceptor Interceptor) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &interceptor
	s.interceptors = append(slices.Clone(s.interceptors), added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interceptors = slices.DeleteFunc(slices.Clone(s.interceptors), func(i *Interceptor) bool { return i == added })
	}
}

// SeverWatches breaks the connection of every open watch, as the end of a process does.
func (s *Server) SeverWatches() {
	s.mu.Lock()
	open := s.pipes
	s.pipes = map[*pipe]struct{}{}
	s.mu.Unlock()
	for p := range open {
		p.sever()
	}
}

// ExpireWatches forgets all changes so far: open watches end with 410 Gone, and so do new ones from older versions and
// continue tokens of older lists.
func (s *Server) ExpireWatches() { s.store.Compact() }

// ResetVersions gives all objects lower resource versions in the same order, as a restore into a new cluster does. All watches end, without an error. One
// from a version that does not exist yet begins, and delivers nothing until it does.
func (s *Server) ResetVersions() { s.store.Renumber(nil) }

// Copy returns a copy of all data, as a snapshot of etcd is.
func (s *Server) Copy() *store.Copy { return s.store.Copy() }

// Restore replaces all data by those of a copy, as it is when all API servers stop, etcd is restored from a snapshot, and the API servers start again: all
// connections break, and new versions can be those of writes that are lost.
func (s *Server) Restore(from *store.Copy) {
	s.store.Restore(from)
	s.SeverWatches()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	interceptors := s.interceptors
	s.mu.Unlock()
	var handler http.Handler = http.HandlerFunc(s.serve)
	for _, interceptor := range interceptors {
		next := handler
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*interceptor)(w, r, next) })
	}
	handler.ServeHTTP(w, r)
}
