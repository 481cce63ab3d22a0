package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// ErrNotCached tells that an object's namespace is not watched: it is not served, not there, or the operator may not.
var ErrNotCached = errors.New("its namespace is not watched")

// Spaces is a cache of some namespaces. Each has watches of its own, so that they come and go, and that one which may not be
// watched is in nobody's way.
type Spaces struct {
	served  filter.Namespaces
	log     *slog.Logger
	options cache.Options
	config  *rest.Config
	// wide is for kinds without namespaces, and for the namespaces themselves.
	wide cache.Cache
	// Closed is called when the watches of a namespace have ended, because it is gone. Nil is nobody.
	Closed func(namespace string)

	running sync.WaitGroup
	started chan struct{}

	mu sync.Mutex
	// over is closed when the cache ends; nil before it starts.
	over <-chan struct{}
	// surveyed: it is known which namespaces are to be watched. listed: it is known which there are; present are those.
	// told: it was said that nobody may tell.
	surveyed, listed, told bool
	present                map[string]bool
	rooms                  map[string]*room
	spreads                map[spreadKey]*spread
	indexed                []indexed
}

// NewSpaces makes a cache of the namespaces that are served. The options are those of its watches in each; what they say of
// namespaces does not count.
func NewSpaces(config *rest.Config, options cache.Options, served filter.Namespaces, log *slog.Logger) (*Spaces, error) {
	options.DefaultNamespaces = nil
	if options.DefaultWatchErrorHandler == nil {
		options.DefaultWatchErrorHandler = toolscache.DefaultWatchErrorHandler
	}
	s := &Spaces{
		served: served, log: log, options: options, config: config, started: make(chan struct{}),
		present: map[string]bool{}, rooms: map[string]*room{}, spreads: map[spreadKey]*spread{},
	}
	wide := options
	wide.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		s.mayNotSurvey(err)
		options.DefaultWatchErrorHandler(ctx, r, err)
	}
	var err error
	if s.wide, err = cache.New(config, wide); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	return s, nil
}

// Start watches until the context ends, and returns when all watches have ended.
func (s *Spaces) Start(ctx context.Context) error {
	s.mu.Lock()
	s.over = ctx.Done()
	s.surveyed = s.served.Fixed()
	for _, name := range s.served.Names() {
		s.openLocked(ctx, name)
	}
	s.mu.Unlock()
	if !s.served.Fixed() {
		if err := s.survey(ctx); err != nil {
			return err
		}
	}
	close(s.started)
	err := s.wide.Start(ctx)
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("watch kinds without namespaces: %w", err)
	}
	return nil
}

// WaitForCacheSync waits until the cache has started. That objects are listed is for those to wait for who want them: a
// namespace that may not be watched would never be.
func (s *Spaces) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-s.started:
		return true
	case <-ctx.Done():
		return false
	}
}

// survey watches which namespaces there are.
func (s *Spaces) survey(ctx context.Context) error {
	informer, err := s.wide.GetInformer(ctx, namespaceAlone(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { s.appear(ctx, nameOf(added)) },
		DeleteFunc: func(deleted any) { s.disappear(nameOf(deleted)) },
	})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	s.running.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			s.settle()
		}
	})
	return nil
}

// settle notes that it is known which namespaces there are.
func (s *Spaces) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.surveyed, s.listed = true, true
}

// mayNotSurvey tells once that only the namespaces which are named outright are served.
func (s *Spaces) mayNotSurvey(err error) {
	resource, refused := refusal(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !refused || resource != (schema.GroupResource{Resource: "namespaces"}) || s.told || s.listed {
		return
	}
	s.told = true
	named := s.served.Names()
	if len(named) == 0 {
		s.log.Error("no namespace can be served: the operator may not list and watch namespaces, which it needs to find those that match; give it that right, or name namespaces outright",
			"namespaces", s.served.String(), "error", err)
		return
	}
	s.surveyed = true
	s.log.Warn("only the namespaces that are named outright are served: the operator may not list and watch namespaces, which it needs to find others that match",
		"namespaces", s.served.String(), "served", named, "error", err)
}

// refusal tells whose list or watch was refused, if an error says that.
func refusal(err error) (schema.GroupResource, bool) {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsForbidden(err) || status.Status().Details == nil {
		return schema.GroupResource{}, false
	}
	details := status.Status().Details
	return schema.GroupResource{Group: details.Group, Resource: details.Kind}, true
}

// appear begins to watch a namespace.
func (s *Spaces) appear(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present[name] = true
	if s.served.Match(name) {
		s.openLocked(ctx, name)
	}
}

// disappear ends the watches of a namespace that is gone.
func (s *Spaces) disappear(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.present, name)
	if leaving := s.rooms[name]; leaving != nil {
		leaving.gone = true
		leaving.end()
	}
}

// Gone tells whether a namespace is known not to be there.
func (s *Spaces) Gone(namespace string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed && !s.present[namespace]
}

// Appeared reports whether a namespace was created after this process began to watch namespaces.
func (s *Spaces) Appeared(namespace string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.rooms[namespace]
	return watched != nil && watched.appeared
}

// openLocked begins to watch a namespace, if it is not watched yet. One of the same name that is gone is waited for: see close.
func (s *Spaces) openLocked(ctx context.Context, name string) {
	if s.rooms[name] != nil || ctx.Err() != nil {
		return
	}
	opened, err := s.newRoom(name)
	if err != nil {
		s.log.Error("the namespace cannot be watched", "namespace", name, "error", err)
		return
	}
	ending, end := context.WithCancel(ctx)
	opened.end, opened.appeared = end, s.listed
	s.rooms[name] = opened
	for _, each := range s.indexed {
		if err := opened.cache.IndexField(ctx, each.of, each.field, each.extract); err != nil {
			s.log.Error("the namespace has no index", "namespace", name, "field", each.field, "error", err)
		}
	}
	for _, informer := range s.spreads {
		if err := informer.enterLocked(ctx, opened); err != nil {
			s.log.Error("the kind cannot be watched in the namespace", "namespace", name, "error", err)
		}
	}
	s.running.Go(func() {
		if err := opened.cache.Start(ending); err != nil {
			s.log.Error("the watches of the namespace ended", "namespace", name, "error", err)
		}
		if ctx.Err() == nil {
			s.close(ctx, opened)
		}
	})
}

// close tells those who followed a namespace that is gone that all of its objects are.
func (s *Spaces) close(ctx context.Context, gone *room) {
	s.mu.Lock()
	var left []*tally
	for _, informer := range s.spreads {
		left = append(left, informer.leaveLocked(gone)...)
	}
	s.mu.Unlock()
	for _, each := range left {
		each.rest()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rooms, gone.namespace)
	if s.Closed != nil {
		s.Closed(gone.namespace)
	}
	if s.present[gone.namespace] {
		s.openLocked(ctx, gone.namespace)
	}
}
