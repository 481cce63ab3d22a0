package apiserver_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// The handler of errors that is left out keeps the time of the last error for the whole process; a bubble begins in
// the year 2000, and the first error in it would wait for decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // Kubernetes offers no other way.
	logger := logr.FromSlogHandler(slog.DiscardHandler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	os.Exit(m.Run()) //nolint:forbidigo // This is the main of tests.
}

func definitions(tb testing.TB) *apiserver.Definitions {
	tb.Helper()
	manifest, err := os.ReadFile("testdata/things.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	parsed, err := apiserver.ParseDefinitions(manifest)
	if err != nil {
		tb.Fatal(err)
	}
	return parsed
}

// start starts a server with the things; close it before the bubble ends.
func start(tb testing.TB, options ...apiserver.Option) *apiserver.Server {
	tb.Helper()
	server, err := apiserver.New(options...)
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

func clientOf(tb testing.TB, server *apiserver.Server) client.WithWatch {
	tb.Helper()
	made, err := client.NewWithWatch(server.Config(), client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

func thingKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tests.einmal.dev", Version: "v1", Kind: "Thing"}
}

func thing(name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(thingKind())
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

func create(tb testing.TB, api client.Client, objects ...client.Object) {
	tb.Helper()
	for _, object := range objects {
		if err := api.Create(context.Background(), object); err != nil {
			tb.Fatal(err)
		}
	}
}
