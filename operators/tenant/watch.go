package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache" //nolint:depguard // Einmal's watches trigger handlers; this one only remembers versions.
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretWatches are the watches of the metadata of Secrets, one for each namespace with credentials. They run until stop.
type secretWatches struct {
	mu    sync.Mutex
	begun map[string]*secretWatch
	// ended is true after stop.
	ended bool
}

// in returns the watch of a namespace and starts it if necessary. It returns nil if the client cannot watch.
func (s *secretWatches) in(ctx context.Context, api client.Client, namespace string) *secretWatch {
	watching, ok := api.(client.WithWatch)
	if s == nil || !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.begun[namespace]; known != nil || s.ended {
		return known
	}
	made := newSecretWatch(watching, namespace)
	ctx, made.end = context.WithCancel(context.WithoutCancel(ctx)) // It outlives the handler.
	made.done.Go(func() { made.informer.RunWithContext(ctx) })
	if s.begun == nil {
		s.begun = map[string]*secretWatch{}
	}
	s.begun[namespace] = made
	return made
}

// stop stops all watches and waits until they have ended.
func (s *secretWatches) stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, one := range s.begun {
		one.end()
		one.done.Wait()
	}
}

// errWatchStarts is the state of a watch before its first list has arrived, and between the end of one watch and the next. It is not a failure.
var errWatchStarts = errors.New("the watch is starting")

// secretWatch watches the metadata of the Secrets in a namespace. It stores only names, UIDs and resource versions.
type secretWatch struct {
	api       client.WithWatch
	namespace string
	informer  toolscache.SharedIndexInformer
	end       context.CancelFunc
	done      sync.WaitGroup

	mu sync.Mutex
	// current is the watch that delivers events, nil for none. failure is why there is none.
	current *metadataWatch
	failure error
}

// byRecord is the index of Secrets by the record that they belong to.
const byRecord = "record"

func newSecretWatch(api client.WithWatch, namespace string) *secretWatch {
	w := &secretWatch{api: api, namespace: namespace, failure: errWatchStarts}
	generation := regexp.MustCompile(`\.g\d+$`)
	w.informer = toolscache.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}, &metav1.PartialObjectMetadata{}, 0,
		toolscache.Indexers{byRecord: func(object any) ([]string, error) {
			secret, ok := object.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil, nil
			}
			return []string{generation.ReplaceAllString(secret.Name, "")}, nil
		}})
	_ = w.informer.SetTransform(slim) // It fails only for an informer that runs.
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { w.fail(err) })
	return w
}

// slim keeps only the metadata that versions needs.
func slim(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}, nil
}

func newSecretList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return list
}

// list lists the Secrets for the informer.
func (w *secretWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	found := newSecretList()
	if err := w.api.List(ctx, found, &client.ListOptions{Namespace: w.namespace, Raw: &options}); err != nil {
		return nil, err //nolint:wrapcheck // client-go compares some by identity.
	}
	return found, nil
}

// watch watches the Secrets for the informer and tracks whether the watch delivers events. A watch with initial events delivers once these
// are complete.
func (w *secretWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	inner, err := w.api.Watch(ctx, newSecretList(), &client.ListOptions{Namespace: w.namespace, Raw: &options})
	if err != nil {
		return nil, err //nolint:wrapcheck // client-go compares some by identity.
	}
	made := &metadataWatch{of: w}
	if lists := options.SendInitialEvents != nil && *options.SendInitialEvents; !lists {
		w.delivers(made)
	}
	made.Interface = watch.Filter(inner, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Bookmark { // Initial events end with one.
			w.delivers(made)
		}
		return event, true
	})
	return made, nil
}

// metadataWatch is one watch of the API server.
type metadataWatch struct {
	watch.Interface

	of *secretWatch
}

// Stop stops the watch and discards its remaining events, so that no goroutine leaks. The informer calls it after each watch, however it ended.
func (m *metadataWatch) Stop() {
	m.Interface.Stop()
	for range m.ResultChan() {
		continue
	}
	m.of.ended(m) // After the last bookmark.
}

func (w *secretWatch) delivers(current *metadataWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current, w.failure = current, nil
}

func (w *secretWatch) ended(last *metadataWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == last {
		w.current, w.failure = nil, errWatchStarts
	}
}

func (w *secretWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current, w.failure = nil, err
}

// trouble returns why the versions of the Secrets are unknown, or nil if they are known.
func (w *secretWatch) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.failure != nil:
		return fmt.Errorf("watch Secrets in namespace %s: %w", w.namespace, w.failure)
	case !w.informer.HasSynced():
		return fmt.Errorf("watch Secrets in namespace %s: %w", w.namespace, errWatchStarts)
	}
	return nil
}

// versions returns the UIDs and resource versions of all Secrets of the given records, by name. These include the copies for readers and
// all generations. It returns false if they are unknown. A returned version is never newer than what a read after the call returns.
func (w *secretWatch) versions(records []string) (map[string]string, bool) {
	if w == nil || w.trouble() != nil {
		return nil, false
	}
	found := map[string]string{}
	for _, record := range records {
		secrets, err := w.informer.GetIndexer().ByIndex(byRecord, record)
		if err != nil {
			return nil, false
		}
		for _, one := range secrets {
			if secret, ok := one.(*metav1.PartialObjectMetadata); ok {
				found[secret.Name] = string(secret.UID) + "/" + secret.ResourceVersion
			}
		}
	}
	return found, true
}
