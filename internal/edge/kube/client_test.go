package kube_test

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// watcherOf returns a client as handlers get it, whose requests a WatchHealth follows.
func watcherOf(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (kube.SplitClient, *kube.WatchHealth) {
	t.Helper()
	server, err := apiserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	health := kube.NewWatchHealth(nil)
	config := rest.CopyConfig(server.Config())
	config.Wrap(wrap)
	config.Wrap(health.Follow)
	live, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return kube.SplitClient{Client: live, Cached: &kube.CachedTypes{}}, health
}

// refusing is a transport that refuses watches.
type refusing struct{ next http.RoundTripper }

// RoundTrip sends a request, unless it is a watch.
func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" {
		return r.next.RoundTrip(request)
	}
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{}, Body: http.NoBody, Request: request,
	}, nil
}

// secretMetadata returns a list of the metadata of Secrets.
func secretMetadata() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return list
}

// A handler can itself watch the metadata of objects.
func TestHandlersCanWatchByThemselves(t *testing.T) {
	t.Parallel()
	handlers, _ := watcherOf(t, func(next http.RoundTripper) http.RoundTripper { return next })
	begun, err := handlers.Watch(t.Context(), secretMetadata(), client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Stop()
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
	if err := handlers.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-begun.ResultChan():
		seen, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || event.Type != watch.Added || seen.Name != "x" || seen.UID != made.UID {
			t.Errorf("the watch yields %s of %+v", event.Type, event.Object)
		}
	case <-time.After(10 * time.Second):
		t.Error("the watch yields nothing")
	}
}

// A refused watch of a handler does not make the operator unready.
func TestRefusedWatchesOfHandlersDoNotCount(t *testing.T) {
	t.Parallel()
	handlers, health := watcherOf(t, func(next http.RoundTripper) http.RoundTripper { return refusing{next} })
	if begun, err := handlers.Watch(t.Context(), secretMetadata(), client.InNamespace("default")); err == nil {
		begun.Stop()
		t.Fatal("the watch is not refused")
	}
	if err := health.Failure(0); err != nil {
		t.Error(err)
	}
}
