package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// checks notes the readiness checks that are added to a manager.
type checks struct {
	manager.Manager
	ready healthz.Checker
}

// AddReadyzCheck keeps the check.
func (c *checks) AddReadyzCheck(_ string, check healthz.Checker) error {
	c.ready = check
	return nil
}

// An operator shares a manager with plain reconcilers. The kind is not served at first: the operator logs what it waits for, and serves the kind
// when it appears.
func TestAnOperatorBesideAPlainReconciler(t *testing.T) {
	real := cluster.Start(t)
	account := real.Account(t, "operator", rbacv1.PolicyRule{
		APIGroups: []string{fixture.Group, ""}, Resources: []string{"widgets", "widgets/status", "configmaps"},
		Verbs: []string{"get", "list", "watch", "patch"},
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), fixture.AddKinds(scheme)); err != nil {
		t.Fatal(err)
	}
	log := fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = "made"
		return nil
	})
	made, err := ctrl.NewManager(account, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, // Without the operator's CacheOptions.
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr := &checks{Manager: made}
	var reconciled atomic.Int32
	plain := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		reconciled.Add(1)
		return reconcile.Result{}, nil
	})
	configMap := &unstructured.Unstructured{}
	configMap.SetAPIVersion("v1")
	configMap.SetKind("ConfigMap")
	if err := errors.Join(ctrl.NewControllerManagedBy(mgr).Named("plain").For(configMap).Complete(plain), op.SetupWithManager(mgr)); err != nil {
		t.Fatal(err)
	}
	stopped := fixture.StartManager(t, mgr)
	ready := func() error { return mgr.ready(&http.Request{}) }
	cluster.Until(t, "not ready while the kind is not served, and says which", func() bool {
		err := ready()
		return err != nil && strings.Contains(err.Error(), "Widget: the API server does not serve this kind")
	})
	w := &world{Cluster: real}
	w.Kubectl(t, string(fixture.CRDs()), "apply", "-f", "-")
	cluster.Eventually(t, "ready when it is", func(context.Context) error { return ready() })
	w.create(t, fixture.StatusCarrier(), "beside")
	w.phase(t, "beside", "made")
	w.quiet(t, fixture.StatusCarrier())
	if reconciled.Load() == 0 {
		t.Error("the plain reconciler was not called")
	}
	if n := log.Count("msg~managed fields"); n != 1 {
		t.Errorf("told %d times that the cache is not stripped, want once", n)
	}
	stopped()
	if err := real.Delete(t.Context(), fixture.NewUntypedWidget("beside")); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}
