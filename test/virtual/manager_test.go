package virtual_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// handlesWidgets returns an operator with one handler.
func handlesWidgets(options ...einmal.OperatorOption) *einmal.Operator {
	op := einmal.New(fixture.Identity, append(options, einmal.Scheme(fixture.AddKinds))...)
	einmal.For[fixture.Widget](op).OnCreate("make", fixture.Nothing)
	return op
}

// Options of a manager that would take a protection away are errors, which say what to do.
func TestOptionsThatNewManagerRefuses(t *testing.T) {
	second := time.Second
	for want, options := range map[string]manager.Options{
		"NewCache: leave it out":                               {NewCache: cache.New},
		"Cache.NewInformer: leave it out":                      {Cache: cache.Options{NewInformer: toolscache.NewSharedIndexInformer}},
		"LeaderElectionResourceLockInterface: leave it out":    {LeaderElectionResourceLockInterface: &resourcelock.LeaseLock{}},
		"LeaderElectionID: leave it out":                       {LeaderElectionID: "another.example.com"},
		"RetryPeriod: use the option einmal.LeaseDuration":     {RetryPeriod: &second},
		"GracefulShutdownTimeout: leave it out, or set at":     {GracefulShutdownTimeout: &second},
		"leader election: no namespace for the Lease; outside": {LeaderElection: true},
	} {
		options.Logger, options.Metrics = logr.Discard(), server.Options{BindAddress: "0"}
		_, err := handlesWidgets().NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, options)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A manager that another function has created lacks the fence and the cache that the operator needs.
func TestSetupWithManagerRefusesAForeignManager(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	options := manager.Options{Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}}
	plain, err := ctrl.NewManager(config, options)
	fixture.Must(t, err)
	of, err := handlesWidgets().NewManager(config, options)
	fixture.Must(t, err)
	for whose, mgr := range map[string]manager.Manager{"controller-runtime": plain, "another operator": of} {
		err := handlesWidgets().SetupWithManager(mgr)
		if err == nil || !strings.Contains(err.Error(), "call it instead of ctrl.NewManager") {
			t.Errorf("the manager of %s: %v", whose, err)
		}
	}
}

// A scheme of the author's without a handled kind is an error before anything is asked.
func TestSetupWithManagerNamesAKindThatTheSchemeLacks(t *testing.T) {
	op := handlesWidgets()
	mgr, err := op.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: clientscheme.Scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
	})
	fixture.Must(t, err)
	if err := op.SetupWithManager(mgr); err == nil || !strings.Contains(err.Error(), "the manager's scheme lacks the kind Widget: leave Scheme out") {
		t.Errorf("it returns %v", err)
	}
}

// The author's transformations and watch error handler of the cache work beside those of the operator.
func TestNewManagerKeepsWhatTheAuthorSetsInTheCache(t *testing.T) {
	log := fixture.NewLog(t)
	declare := func(op *einmal.Operator) { einmal.For[fixture.Widget](op).OnCreate("make", fixture.Nothing) }
	virtually(t, log, declare, func(t *testing.T, w *virtualWorld) {
		w.Stop() // The operator runs in another manager from here on.
		labelled := func(label string) toolscache.TransformFunc {
			return func(object any) (any, error) {
				accessor, err := meta.Accessor(object)
				if err == nil {
					accessor.SetLabels(map[string]string{"seen": label})
				}
				return object, err
			}
		}
		var failed atomic.Int32
		mgr, err := handlesWidgets(einmal.StateNamespace("default")).NewManager(w.Server.Config(), manager.Options{
			Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Cache: cache.Options{
				DefaultTransform:         labelled("as any object"),
				ByObject:                 map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Transform: labelled("as a ConfigMap")}},
				DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) { failed.Add(1) },
			},
		})
		fixture.Must(t, err)
		stop := fixture.StartManager(t, mgr)
		defer stop()
		widget, named := fixture.NewWidget("one"), metav1.ObjectMeta{Namespace: "default", Name: "one"}
		configMap := &corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"managed": "by the user"}}
		fixture.Must(t, w.User.Create(t.Context(), widget))
		fixture.Must(t, w.User.Create(t.Context(), configMap))
		w.Pass(time.Minute)
		for want, one := range map[string]client.Object{"as any object": widget, "as a ConfigMap": configMap} {
			fixture.Must(t, mgr.GetClient().Get(t.Context(), client.ObjectKeyFromObject(one), one))
			if one.GetLabels()["seen"] != want || one.GetManagedFields() != nil {
				t.Errorf("the cache has %T with labels %v and managed fields %v", one, one.GetLabels(), one.GetManagedFields())
			}
		}
		w.Server.Intercept(func(answer http.ResponseWriter, _ *http.Request, _ http.Handler) {
			answer.WriteHeader(http.StatusServiceUnavailable)
		})
		w.Server.SeverWatches()
		w.Pass(time.Minute)
		if failed.Load() == 0 {
			t.Error("the author's function does not get the failure of a watch")
		}
	})
}
