package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

func coreOf(t *testing.T, server *apiserver.Server) kubernetes.Interface {
	t.Helper()
	made, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

func TestInterceptorCountsRefusesAndIsRemoved(t *testing.T) {
	server := start(t)
	defer server.Close()
	maps := coreOf(t, server).CoreV1().ConfigMaps("default")
	seen := 0
	remove := server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		seen++
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("the refused request gives %v", err)
	}
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	remove()
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if seen != 2 {
		t.Errorf("the interceptor saw %d requests, want 2", seen)
	}
}

func TestInterceptorDropsTheAnswerOfAWriteThatWasApplied(t *testing.T) {
	server := start(t)
	defer server.Close()
	maps := coreOf(t, server).CoreV1().ConfigMaps("default")
	remove := server.Intercept(func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !errors.Is(err, apiserver.ErrConnection) {
		t.Errorf("the request whose answer is lost gives %v", err)
	}
	remove()
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the write was not applied: %v", err)
	}
}

func TestInterceptorDelaysInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t)
		defer server.Close()
		server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			select {
			case <-time.After(time.Hour):
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
		maps, begin := coreOf(t, server).CoreV1().ConfigMaps("default"), time.Now()
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("it took %s and gives %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := maps.List(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that gives up gets %v", err)
		}
		_, err := maps.Watch(ctx, metav1.ListOptions{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a watch that gives up gets %v", err)
		}
	})
}

func TestWatchesAreSeveredAndExpired(t *testing.T) {
	server := start(t)
	defer server.Close()
	maps := coreOf(t, server).CoreV1().ConfigMaps("default")
	open := func(version string) watch.Interface {
		opened, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	made, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	severed := open(made.ResourceVersion)
	server.SeverWatches()
	if told, more := <-severed.ResultChan(); more {
		t.Errorf("the severed watch tells %v", told)
	}
	expired := open(made.ResourceVersion)
	server.ExpireWatches()
	for what, w := range map[string]watch.Interface{"open": expired, "new": open(made.ResourceVersion)} {
		told := <-w.ResultChan()
		if err := apierrors.FromObject(told.Object); told.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("the %s expired watch tells %v", what, told)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	server := start(t, apiserver.WithHistory(2))
	defer server.Close()
	maps := coreOf(t, server).CoreV1().ConfigMaps("default")
	first, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "d", "e", "f", "g"} {
		if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	old, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if told := <-old.ResultChan(); told.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(told.Object)) {
		t.Errorf("the watch of too old a version tells %v", told)
	}
}

func TestClosedServerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Clients repeat a read whose connection breaks, second after second.
		server := start(t)
		maps := coreOf(t, server).CoreV1().ConfigMaps("default")
		opened, err := maps.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		server.Close()
		if told, more := <-opened.ResultChan(); more {
			t.Errorf("the watch of a closed server tells %v", told)
		}
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, apiserver.ErrConnection) {
			t.Errorf("a closed server gives %v", err)
		}
	})
}

func TestKindsAreDescribed(t *testing.T) {
	server := start(t, apiserver.WithDefinitions(definitions(t)))
	defer server.Close()
	api, err := discovery.NewDiscoveryClientForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	described, err := kube.Describe(context.Background(), api, thingKind())
	if err != nil || described.Resource != "things" || !described.Namespaced || !described.HasStatus || described.Carrier != record.Status {
		t.Errorf("the kind is described as %+v, %v", described, err)
	}
	if _, err := kube.Describe(context.Background(), api, thingKind().GroupVersion().WithKind("Other")); !errors.Is(err, kube.ErrNotServed) {
		t.Errorf("an unknown kind gives %v", err)
	}
	if _, err := kube.Describe(context.Background(), api, corev1.SchemeGroupVersion.WithKind("Secret")); err != nil {
		t.Error(err)
	}
}

func TestDefinitionsAreSharedByBubbles(t *testing.T) {
	parsed := definitions(t)
	for range 8 {
		t.Run("bubble", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := start(t, apiserver.WithDefinitions(parsed))
				defer server.Close()
				api := clientOf(t, server)
				create(t, api, thing("a"), thing("b"))
				if visitsOf(t, api, "a") != 0 {
					t.Error("there are visits of another bubble")
				}
			})
		})
	}
}
