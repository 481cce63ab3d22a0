package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Tolerance keeps the lists and watches of a cache working while some objects cannot be decoded into the Go type of their kind. client-go
// decodes a list as a whole, so that a single such object would stop its kind. A list or watch that fails to decode is therefore repeated,
// and the objects that cannot be decoded are replaced by their metadata and a mark. While all objects can be decoded, this costs next to nothing.
//
// It needs three parts: NewInformer in the options of the cache, Wrap around the transport of the cache, and Cache around the cache. A nil
// Tolerance marks nothing.
type Tolerance struct {
	// mark is an annotation that marks the replacements. It is random, so that users cannot set it.
	mark string

	restores restores
}

// NewTolerance returns a new Tolerance.
func NewTolerance() *Tolerance { return &Tolerance{mark: "undecodable-" + uuid.NewString()} }

// Failure returns why an object of the cache or of an event could not be decoded, or nil if the object is complete.
func (t *Tolerance) Failure(of metav1.Object) *UndecodableError {
	if t == nil {
		return nil
	}
	text, marked := of.GetAnnotations()[t.mark]
	if !marked {
		return nil
	}
	failure := &UndecodableError{}
	if err := json.Unmarshal([]byte(text), failure); err != nil {
		return &UndecodableError{}
	}
	return failure
}

// NewInformer creates the informers of a cache, for cache.Options. They also list again after the etcd of the API server was restored.
func (t *Tolerance) NewInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	asked := toolscache.ToListerWatcherWithContext(from)
	guard := &restoreGuard{from: asked, restores: &t.restores, newest: asked.ListWithContext, undecodable: func() {}}
	if _, free := example.(runtime.Unstructured); !free {
		source := t.source(asked, example)
		guard.from, guard.newest = toolscache.ToListerWatcherWithContext(source.listWatch()), source.listChecked
		guard.undecodable = func() { source.failed.Store(true) }
	}
	return toolscache.NewSharedIndexInformer(guard.listWatch(), example, resync, by)
}

func (t *Tolerance) source(from toolscache.ListerWatcherWithContext, example runtime.Object) *tolerantSource {
	return &tolerantSource{mark: t.mark, from: from, goType: reflect.TypeOf(example).Elem(), replaced: map[types.NamespacedName]bool{}}
}

// tolerantSource lists and watches the objects of one kind.
type tolerantSource struct {
	mark   string
	from   toolscache.ListerWatcherWithContext
	goType reflect.Type
	// failed means that the last list or watch could not be decoded. The next one checks each object.
	failed atomic.Bool

	mu sync.Mutex
	// replaced holds the objects that were replaced and have not been corrected or deleted.
	replaced map[types.NamespacedName]bool
}

func (s *tolerantSource) listWatch() toolscache.ListerWatcher {
	return &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *tolerantSource) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	asked, checks := s.checking(ctx)
	found, err := s.from.ListWithContext(asked, options)
	if err != nil && !checks && mayBeDecoding(err) {
		found, err = s.from.ListWithContext(s.check(ctx), options)
	}
	return found, err //nolint:wrapcheck // client-go compares some errors by identity.
}

// listChecked lists objects, each of which is checked. What the next list or watch does remains the same.
func (s *tolerantSource) listChecked(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return s.from.ListWithContext(s.check(ctx), options) //nolint:wrapcheck // As above.
}

func (s *tolerantSource) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	asked, _ := s.checking(ctx)
	return s.from.WatchWithContext(asked, options) //nolint:wrapcheck // As above.
}

// checking returns a context for a request whose objects are checked, if that is necessary.
func (s *tolerantSource) checking(ctx context.Context) (context.Context, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failed.Swap(false) && len(s.replaced) == 0 {
		return ctx, false
	}
	return s.check(ctx), true
}

func (s *tolerantSource) check(ctx context.Context) context.Context {
	return context.WithValue(ctx, replacerKey{}, replacer(s.replace))
}

// mayBeDecoding reports whether a list may have failed because its response could not be decoded.
func mayBeDecoding(err error) bool {
	var status apierrors.APIStatus
	var request *url.Error
	return !errors.As(err, &status) && !errors.As(err, &request) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// replace returns the object itself if it can be decoded, otherwise its replacement.
func (s *tolerantSource) replace(text []byte, event watch.EventType) []byte {
	var found map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &found) != nil {
		return text
	}
	var failure *UndecodableError
	if decodeAs(s.goType, text) != nil {
		failure = undecodable(found, s.goType)
	}
	key := types.NamespacedName{Namespace: object.Text(found, "metadata", "namespace"), Name: object.Text(found, "metadata", "name")}
	s.mu.Lock()
	delete(s.replaced, key)
	if failure != nil && event != watch.Deleted {
		s.replaced[key] = true
	}
	s.mu.Unlock()
	if failure == nil {
		return text
	}
	return s.replacement(found, failure, text)
}

// replacement returns the metadata of an object with a mark, or the text itself if that cannot be encoded.
func (s *tolerantSource) replacement(of object.Body, failure *UndecodableError, text []byte) []byte {
	reason, err := json.Marshal(failure)
	if err != nil {
		return text
	}
	metadata := readableMetadata(of)
	metadata = object.With(metadata, object.Path{"annotations", s.mark}, string(reason))
	replaced, err := json.Marshal(map[string]any{"apiVersion": of["apiVersion"], "kind": of["kind"], "metadata": metadata})
	if err != nil {
		return text
	}
	return replaced
}

// readableMetadata returns the fields of the metadata that can be decoded.
func readableMetadata(of object.Body) object.Body {
	readable := object.Body{}
	for name, value := range object.Map(of, "metadata") {
		alone := map[string]any{name: value}
		if name != "managedFields" && undecodable(alone, reflect.TypeFor[metav1.ObjectMeta]()) == nil {
			readable[name] = value
		}
	}
	return readable
}

// relayed is a watch that reports events which could not be decoded. When it is stopped, it drains the events in transit, which client-go's
// reflector does not (https://github.com/kubernetes/kubernetes/pull/139321): controller-runtime forwards the events of metadata with
// watch.Filter, which would block forever.
type relayed struct {
	from watch.Interface
	to   chan watch.Event
	stop chan struct{}
	once sync.Once
}

// relay returns a watch with the same events. It calls undecodable before it delivers an event that could not be decoded, and ends when the channel is closed.
func relay(from watch.Interface, undecodable func(), end <-chan struct{}) watch.Interface {
	r := &relayed{from: from, to: make(chan watch.Event), stop: make(chan struct{})}
	go r.run(undecodable, end)
	return r
}

// ResultChan returns the channel of the events.
func (r *relayed) ResultChan() <-chan watch.Event { return r.to }

// Stop stops the watch.
func (r *relayed) Stop() {
	r.from.Stop()
	r.once.Do(func() { close(r.stop) })
}

func (r *relayed) run(undecodable func(), end <-chan struct{}) {
	defer close(r.to)
	for {
		select {
		case event, more := <-r.from.ResultChan():
			if !more {
				return
			}
			if event.Type == watch.Error && isDecoding(event.Object) {
				undecodable()
			}
			select {
			case r.to <- event:
			case <-r.stop: // The loop drains the rest.
			}
		case <-end:
			r.Stop()
			end = nil
		}
	}
}

// isDecoding reports whether the object of an error event says that client-go could not decode an event.
func isDecoding(of runtime.Object) bool {
	status, is := of.(*metav1.Status)
	return is && status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == "ClientWatchDecoding"
	})
}
