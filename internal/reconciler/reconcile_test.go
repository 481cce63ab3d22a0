package reconciler

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// reconciliation is what can be to do for an object that exists. It takes so many patches.
type reconciliation struct {
	title   string
	prepare func(*oneObject)
	patches int
}

func reconciliations() []reconciliation {
	return []reconciliation{
		{"nothing to do", func(*oneObject) {}, 0},
		{"create", (*oneObject).replace, 2}, // The finalizer, and what the handler has done.
		{"update", (*oneObject).update, 1},
		{"conflict", func(o *oneObject) { o.update(); o.refuse = true }, 2},
	}
}

// A reconciliation takes as few patches as possible.
func TestAReconciliationTakesFewPatches(t *testing.T) {
	o := newOneObject(t)
	for _, one := range reconciliations() {
		one.prepare(o)
		o.reconcile(t, one.patches)
	}
}

// The cost of one reconciliation without an API server: the object is in memory, and a JSON Patch is applied to it there.
func BenchmarkReconcile(b *testing.B) {
	for _, one := range reconciliations() {
		b.Run(one.title, func(b *testing.B) {
			o := newOneObject(b)
			for b.Loop() {
				one.prepare(o)
				o.reconcile(b, one.patches)
			}
		})
	}
}

// oneObject is an operator, and an API server that has one object.
type oneObject struct {
	reconciler *Reconciler
	object     object.Body
	// version is the newest resource version, and requests counts the patches.
	version, requests int
	// refuse means that another client changes the object immediately before the next patch.
	refuse bool
}

func newOneObject(tb testing.TB) *oneObject {
	tb.Helper()
	registered, err := metrics.Register(prometheus.NewRegistry())
	if err != nil {
		tb.Fatal(err)
	}
	o := &oneObject{}
	settings := declaration.Settings{Identity: "bench.example.com", AttemptTimeout: time.Minute, Window: time.Second, Log: slog.New(slog.DiscardHandler)}
	phase := func(_ context.Context, call *attempt.Call) error {
		call.Left = object.With(call.Given, object.Path{"status", "phase"}, object.Text(call.Given, "spec", "size"))
		return nil
	}
	kind := declaration.Kind{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		New: func() client.Object { return &unstructured.Unstructured{} },
		Body: func(from client.Object) (object.Body, error) {
			return from.(*unstructured.Unstructured).Object, nil //nolint:forcetypeassert // See New.
		},
		Canonical: func(body object.Body) (object.Body, error) { return body, nil },
		Handlers: []declaration.Handler{
			{Declaration: handler.Declaration{ID: "create", Verb: cause.Create}, Call: phase},
			{Declaration: handler.Declaration{ID: "update", Verb: cause.Update}, Call: phase},
			{Declaration: handler.Declaration{ID: "delete", Verb: cause.Delete}, Call: phase},
		},
	}
	described := kube.Description{Resource: "widgets", Namespaced: true, HasStatus: true, Carrier: record.Status}
	views := &schemaview.Current{}
	views.Set(schemaview.New(kind, settings.Identity, described))
	o.reconciler, _ = New(tb.Context(), Options{
		Settings: settings, Kind: kind, Views: views, State: &State{}, FirstList: &objects.FirstList{Log: settings.Log},
		Store:  kindstore.New(kindstore.Options{Log: settings.Log, Records: func() kindstore.Records { return kindstore.Records{OfEveryObject: true} }}),
		Server: kube.Objects{Client: benchClient{api: o}, Kind: kind.GVK, Owner: settings.Identity}, Cache: benchCache{api: o},
		Reports: &report.Kind{
			Identity: settings.Identity, GVK: kind.GVK, Log: settings.Log, Redactor: redact.New(),
			Metrics: registered.Kind(settings.Identity, kind.GVK.GroupKind().String()),
		},
		RecordOwners: &kube.RecordOwners{},
		Behind:       func(types.NamespacedName, string) bool { return false },
		Lost:         func() bool { return false },
		Why:          func() error { return nil },
	})
	o.replace()
	o.reconcile(tb, 2)
	return o
}

func (o *oneObject) key() types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: "one"}
}

// replace replaces the object by a new one of the same name.
func (o *oneObject) replace() {
	o.reconciler.State.Objects.Forget(o.key())
	o.version++
	o.object = object.Body{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": object.Body{
			"namespace": "default", "name": "one", "uid": "uid-" + strconv.Itoa(o.version), "resourceVersion": strconv.Itoa(o.version),
			"generation": int64(1), "creationTimestamp": "2026-11-30T06:00:00Z",
			"labels": object.Body{"app.kubernetes.io/name": "one", "app.kubernetes.io/instance": "one"},
		},
		"spec": object.Body{
			"size": "1", "replicas": int64(3), "image": "widget:1.0",
			"ports": []any{object.Body{"name": "http", "port": int64(80)}, object.Body{"name": "https", "port": int64(443)}},
		},
	}
}

// update changes the object as a user does.
func (o *oneObject) update() { o.set(object.Path{"spec", "size"}) }

// set sets a field of the object to a value that it has not had before.
func (o *oneObject) set(field object.Path) {
	o.version++
	value := strconv.Itoa(o.version)
	o.object = object.With(object.With(o.object, field, value), object.Path{"metadata", "resourceVersion"}, value)
}

// reconcile handles the object until nothing is left to do, and expects that it takes so many patches.
func (o *oneObject) reconcile(tb testing.TB, patches int) {
	tb.Helper()
	o.requests = 0
	for again := true; again; {
		wake, err := o.reconciler.reconcile(tb.Context(), o.key())
		if err != nil {
			tb.Fatal(err)
		}
		again = !wake.IsZero()
	}
	if o.requests != patches {
		tb.Fatalf("%d patches, want %d", o.requests, patches)
	}
}

// patch applies a JSON Patch.
func (o *oneObject) patch(into client.Object, with client.Patch) error {
	o.requests++
	if o.refuse {
		o.refuse = false
		o.set(object.Path{"metadata", "labels", "by"})
		return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "one", nil)
	}
	data, err := with.Data(into)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return err
	}
	text, err := json.Marshal(o.object)
	if err == nil {
		text, err = patch.Apply(text)
	}
	if err != nil {
		return err
	}
	patched := &unstructured.Unstructured{}
	if err := patched.UnmarshalJSON(text); err != nil {
		return err
	}
	o.version++
	patched.SetResourceVersion(strconv.Itoa(o.version))
	o.object = patched.Object
	return o.get(into)
}

func (o *oneObject) get(into client.Object) error {
	into.(*unstructured.Unstructured).Object = o.object //nolint:forcetypeassert // The engine reads nothing else.
	return nil
}

// benchClient is a client of the API server.
type benchClient struct {
	client.Client

	api *oneObject
}

// Get reads the object.
func (c benchClient) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return c.api.get(into)
}

// Patch changes the object.
func (c benchClient) Patch(_ context.Context, into client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.api.patch(into, patch)
}

// SubResource returns a client for a part of the object.
func (c benchClient) SubResource(string) client.SubResourceClient {
	return benchStatus{api: c.api}
}

// benchStatus is a client for the status of the object.
type benchStatus struct {
	client.SubResourceClient

	api *oneObject
}

// Patch changes the object.
func (s benchStatus) Patch(_ context.Context, into client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.api.patch(into, patch)
}

// benchCache is a cache that always has the newest object.
type benchCache struct {
	client.Reader

	api *oneObject
}

// Get reads the object.
func (c benchCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return c.api.get(into)
}
