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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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

// besidePlain returns a manager with an operator and a plain reconciler, which calls reconciled for each ConfigMap.
func besidePlain(t *testing.T, account *rest.Config, op *einmal.Operator, reconciled func()) *checks {
	t.Helper()
	made, err := op.NewManager(account, manager.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr := &checks{Manager: made}
	plain := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		reconciled()
		return reconcile.Result{}, nil
	})
	if err := errors.Join(ctrl.NewControllerManagedBy(mgr).Named("plain").For(&corev1.ConfigMap{}).Complete(plain), op.SetupWithManager(mgr)); err != nil {
		t.Fatal(err)
	}
	return mgr
}

// An operator shares a manager with a plain reconciler. The kind is not served at first: the operator logs what it waits for, and serves the kind
// when it appears. When the replica has lost the Lease, the manager ends, and the plain reconciler cannot write either.
func TestAnOperatorBesideAPlainReconciler(t *testing.T) {
	real := cluster.Start(t)
	account := real.Account(t, "operator", rbacv1.PolicyRule{
		APIGroups: []string{fixture.Group, "", "coordination.k8s.io"}, Resources: []string{"widgets", "widgets/status", "configmaps", "leases"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
	})
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = "made"
		return nil
	})
	var reconciled atomic.Int32
	mgr := besidePlain(t, account, op, func() { reconciled.Add(1) })
	write := func() error {
		return mgr.GetClient().Patch(t.Context(), fixture.NewConfigMap("plain", 1), client.Merge)
	}
	if err := write(); err == nil || !strings.Contains(err.Error(), "this replica does not hold the Lease") {
		t.Errorf("a write before the election: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
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
	var cached fixture.Widget
	if err := mgr.GetClient().Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "beside"}, &cached); err != nil || cached.ManagedFields != nil {
		t.Errorf("the cache has managed fields: %v, %v", cached.ManagedFields, err)
	}
	if reconciled.Load() == 0 {
		t.Error("the plain reconciler was not called")
	}
	w.Kubectl(t, "", "patch", "lease", fixture.Identity, "--type=merge", "-p", `{"spec":{"holderIdentity":"another"}}`)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "leader election lost") {
		t.Errorf("the manager ended with %v after another replica had taken the Lease", err)
	}
	if err := write(); err == nil || !strings.Contains(err.Error(), "this replica does not hold the Lease") {
		t.Errorf("a write after the Lease was lost: %v", err)
	}
	w.Kubectl(t, "", "delete", "widget", "beside", "--wait=false")
}
