package kindstore

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// newState returns the state of a kind whose every object gets a record.
func newState(served filter.Namespaces, store kube.KindStore, health *kube.WatchHealth) *State {
	log := slog.New(slog.DiscardHandler)
	return New(Options{
		Store: store, Resource: "pods", Served: served, Health: health, Log: log, FirstList: &objects.FirstList{Log: log},
		Records: func() Records { return Records{OfEveryObject: true} },
	})
}

// Scenario 84 of docs/concepts/scenarios.md: each namespace has its own watermark, which does not move while the contents of the namespace
// are unknown, and is forgotten with it. The watermark of all namespaces applies to each.
func TestWatermarksOfNamespaces(t *testing.T) {
	t.Parallel()
	_, api := apiserver.Start(t)
	served, err := filter.ParseNamespaces("a-*")
	if err != nil {
		t.Fatal(err)
	}
	long, older, newer := "2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z", "2000-01-03T00:00:00Z"
	place := types.NamespacedName{Namespace: "default", Name: "op.example.com"}
	books := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name},
		Data:       map[string]string{"pods": older, "pods_a-1": long, "pods_a-2": newer, "nodes_a-3": newer},
	}
	if err := api.Create(t.Context(), books); err != nil {
		t.Fatal(err)
	}
	health := &kube.WatchHealth{}
	state := newState(served, kube.KindStore{Client: api, Owner: place.Name, Place: place}, health)
	state.options.FirstList.End()
	if err := state.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	starts := map[string]string{"a-1": older, "a-2": newer, "a-3": older}
	for namespace, want := range starts {
		state.with(namespace, func(scope *record.Watermark) {
			if got := scope.At.UTC().Format(time.RFC3339); got != want {
				t.Errorf("%s begins at %s, want %s", namespace, got, want)
			}
			scope.Recorded("x", time.Date(2000, 1, 4, 0, 0, 0, 0, time.UTC))
		})
	}
	watch(t, health, "a-1", http.StatusOK)
	watch(t, health, "a-2", http.StatusForbidden)
	for _, scope := range state.known() {
		state.raise(t.Context(), scope)
	}
	if !state.forget("a-2") {
		t.Error("a-2 is not stored")
	}
	if err := state.store.Remove(t.Context(), "pods", "a-2"); err != nil {
		t.Error(err)
	}
	if err := api.Get(t.Context(), place, books); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"pods": older, "pods_a-1": "2000-01-04T00:00:00Z", "nodes_a-3": newer}
	if diff := cmp.Diff(want, books.Data); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
}

// watch answers a watch of pods in a namespace.
func watch(t *testing.T, health *kube.WatchHealth, namespace string, with int) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://server/api/v1/namespaces/"+namespace+"/pods?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := health.Follow(answered(with)).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

type answered int

// RoundTrip answers with the code.
func (a answered) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Status: http.StatusText(int(a)), Body: http.NoBody}, nil
}

// Without a place for watermarks, or the right to read it, nothing of objects is kept.
func TestNothingIsKeptWithoutAPlaceForWatermarks(t *testing.T) {
	t.Parallel()
	place := types.NamespacedName{Namespace: "default", Name: "op.example.com"}
	for name, test := range map[string]struct {
		namespace string
		forbidden bool
		want      int
	}{
		"a place":                        {namespace: place.Namespace, want: 1},
		"no namespace":                   {},
		"no right to read the ConfigMap": {namespace: place.Namespace, forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, api := apiserver.Start(t)
			if test.forbidden {
				server.Intercept(func(answer http.ResponseWriter, _ *http.Request, _ http.Handler) {
					answer.Header().Set("Content-Type", "application/json")
					answer.WriteHeader(http.StatusForbidden)
					_, _ = answer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
				})
			}
			state := newState(filter.Namespaces{}, kube.KindStore{
				Client: api, Owner: place.Name, Place: types.NamespacedName{Namespace: test.namespace, Name: place.Name},
			}, nil)
			if err := state.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			state.Arrived(Object{Namespace: "a", UID: "c", Name: "a/b"})
			used := 0
			state.with("a", func(*record.Watermark) { used++ })
			if used != test.want || len(state.watermarks.scopes) != test.want {
				t.Errorf("%d watermarks are used and %d kept, want %d", used, len(state.watermarks.scopes), test.want)
			}
		})
	}
}
