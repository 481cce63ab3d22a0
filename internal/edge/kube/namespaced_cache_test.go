package kube_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// eventNotes records the events that an event handler gets, and can block it.
type eventNotes struct {
	mu    sync.Mutex
	lines []string
	hang  chan struct{}
}

func (n *eventNotes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *eventNotes) has(want ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := slices.Clone(n.lines)
	slices.Sort(got)
	return slices.Equal(got, want)
}

func keyText(object any) string {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return err.Error()
	}
	return key
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// Scenarios 76 and 84 (docs/concepts/scenarios.md): when a namespace is deleted, all of its objects are reported as deleted, including
// those for which no deletion was delivered. Events of a new namespace with the same name come afterwards. Other namespaces are not
// affected.
func TestObjectsOfANamespaceThatIsGoneAreGone(t *testing.T) {
	t.Parallel()
	server, api := apiserver.Start(t)
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := api.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	namespace := func(name string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	config := func(namespace, name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	create(namespace("a-1"), namespace("b"), config("a-1", "one"), config("b", "one"))
	namespaced := startNamespacedCache(t, server, "a-*")
	told := &eventNotes{hang: make(chan struct{})}
	informer, err := namespaced.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) {
			told.add("+" + keyText(added))
			if keyText(added) == "a-1/last" {
				<-told.hang
			}
		},
		DeleteFunc: func(deleted any) { told.add("-" + keyText(deleted)) },
	}); err != nil {
		t.Fatal(err)
	}
	create(namespace("a-2"), config("a-2", "one"))
	eventually(t, "a namespace appears", func() bool { return told.has("+a-1/one", "+a-2/one") })
	create(config("a-1", "last"))
	eventually(t, "a handler blocks", func() bool { return told.has("+a-1/last", "+a-1/one", "+a-2/one") })
	if err := api.Delete(t.Context(), namespace("a-1")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool { return namespaced.Gone("a-1") })
	create(namespace("a-1"), config("a-1", "new"))
	create(config("a-2", "two"))
	eventually(t, "other namespaces are handled", func() bool { return told.has("+a-1/last", "+a-1/one", "+a-2/one", "+a-2/two") })
	close(told.hang)
	eventually(t, "all deletions are delivered", func() bool {
		return told.has("+a-1/last", "+a-1/new", "+a-1/one", "+a-2/one", "+a-2/two", "-a-1/last", "-a-1/one")
	})
	if last := told.lines[len(told.lines)-1]; last != "+a-1/new" {
		t.Errorf("the last event is %s: an event of the new namespace came before those of the old one", last)
	}
	all := &corev1.ConfigMapList{}
	if err := namespaced.List(t.Context(), all); err != nil || len(all.Items) != 3 {
		t.Errorf("the cache holds %v, %v", all.Items, err)
	}
}

// startNamespacedCache runs a cache of the namespaces that match.
func startNamespacedCache(t *testing.T, server *apiserver.Server, patterns ...string) *kube.NamespacedCache {
	t.Helper()
	served, err := filter.ParseNamespaces(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	through, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespaced, err := kube.NewNamespacedCache(server.Config(), cache.Options{Scheme: clientscheme.Scheme, Mapper: through.RESTMapper()},
		served, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- namespaced.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return namespaced
}
