package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

const finalizer = "tests.einmal.dev/hold"

// visitor visits each thing once an hour: it keeps a finalizer, a child and a count of the visits in the status.
type visitor struct {
	client.Client
	recorder events.EventRecorder
}

func (v *visitor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := thing("")
	if err := v.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.GetDeletionTimestamp() != nil {
		controllerutil.RemoveFinalizer(found, finalizer)
		return ctrl.Result{}, v.Update(ctx, found)
	}
	if controllerutil.AddFinalizer(found, finalizer) {
		if err := v.Update(ctx, found); err != nil {
			return ctrl.Result{}, err
		}
	}
	child := &corev1.ConfigMap{}
	child.Namespace, child.Name = found.GetNamespace(), found.GetName()
	if _, err := controllerutil.CreateOrUpdate(ctx, v.Client, child, func() error {
		child.Data = map[string]string{"of": found.GetName()}
		return controllerutil.SetControllerReference(found, child, v.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := found.DeepCopy()
	visits, _, _ := unstructured.NestedInt64(found.Object, "status", "visits")
	if err := unstructured.SetNestedField(found.Object, visits+1, "status", "visits"); err != nil {
		return ctrl.Result{}, err
	}
	v.recorder.Eventf(found, nil, corev1.EventTypeNormal, "Visited", "Visit", "visit %d", visits+1)
	return ctrl.Result{RequeueAfter: time.Hour}, v.Status().Patch(ctx, found, client.MergeFrom(before))
}

// manage starts a manager, and returns what stops it and waits for its end.
func manage(t *testing.T, server *apiserver.Server) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(thingKind(), meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &visitor{Client: mgr.GetClient(), recorder: mgr.GetEventRecorder("visitor")}
	err = ctrl.NewControllerManagedBy(mgr).For(thing(""), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func visitsOf(t *testing.T, api client.Client, name string) int64 {
	t.Helper()
	found := thing("")
	if err := api.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
		t.Fatal(err)
	}
	visits, _, _ := unstructured.NestedInt64(found.Object, "status", "visits")
	return visits
}

func gone(api client.Client, object client.Object) bool {
	return apierrors.IsNotFound(api.Get(context.Background(), client.ObjectKeyFromObject(object), object))
}

func TestManagerRunsForHoursAndLeavesNothing(t *testing.T) {
	const rounds = 20
	parsed := definitions(t)
	before := runtime.NumGoroutine()
	for range rounds {
		synctest.Test(t, func(t *testing.T) { runForHours(t, parsed) })
	}
	deadline := time.After(10 * time.Second)
	for runtime.NumGoroutine() > before {
		select {
		case <-deadline:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		default:
			runtime.Gosched()
		}
	}
}

func runForHours(t *testing.T, parsed *apiserver.Definitions) {
	t.Helper()
	const hours = 4
	server := start(t, apiserver.WithDefinitions(parsed))
	defer server.Close()
	api := clientOf(t, server)
	stop := manage(t, server)
	names := []string{"thing-0", "thing-1", "thing-2"}
	for _, name := range names {
		create(t, api, thing(name))
	}
	pass(hours*time.Hour + time.Minute)
	for _, name := range names {
		if visits := visitsOf(t, api, name); visits <= hours || visits > hours+2 {
			t.Errorf("%s was visited %d times in %d hours", name, visits, hours)
		}
	}
	if err := api.Delete(context.Background(), thing("thing-0")); err != nil {
		t.Error(err)
	}
	pass(time.Minute)
	child := &corev1.ConfigMap{}
	child.Namespace, child.Name = "default", "thing-0"
	if !gone(api, thing("thing-0")) || !gone(api, child) {
		t.Error("the deleted thing or its child is still there")
	}
	stop()
	pass(time.Minute) // What posts events is not ended by the manager.
}

func TestManagerSurvivesBrokenAndExpiredWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t, apiserver.WithDefinitions(definitions(t)))
		api := clientOf(t, server)
		stop := manage(t, server)
		pass(time.Second)
		for i, disturb := range []func(){server.SeverWatches, server.ExpireWatches} {
			disturb()
			name := fmt.Sprint("thing-", i)
			create(t, api, thing(name))
			pass(2 * time.Minute)
			if visitsOf(t, api, name) == 0 {
				t.Errorf("%s was not visited", name)
			}
		}
		stop()
		pass(time.Minute)
		server.Close()
	})
}
