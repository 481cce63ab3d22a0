package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Namespaces come and go, and a missing permission in one does not affect the others.
func TestNamespacesOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	t.Run("watches follow the namespaces that match (scenario 84)", w.namespacesComeAndGo)
	t.Run("without a permission the rest is served, with one warning (scenario 85)", w.namespacesWithoutRights)
}

// serveNamespaces runs an operator of some namespaces, which tells its readiness and metrics.
func (w *world) serveNamespaces(t *testing.T, said *fixture.Notes, patterns ...string) (log *fixture.Log, health, shown string) {
	t.Helper()
	log, health, shown = fixture.NewLog(t), cluster.FreeAddress(t), cluster.FreeAddress(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Namespaces(patterns...),
		einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		said.Add("%s/%s", c.Object.Namespace, c.Object.Name)
		return nil
	})
	fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: health, MetricsAddress: shown})
	return log, "http://" + health + "/readyz?verbose", "http://" + shown + "/metrics"
}

// makeIn makes namespaces, and a widget in each.
func (w *world) makeIn(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		cluster.Eventually(t, "make namespace "+name, func(ctx context.Context) error { return w.Create(ctx, fixture.NewNamespace(name)) })
		widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		widget.SetAPIVersion(fixture.Group + "/v1")
		widget.SetKind("Widget")
		widget.SetNamespace(name)
		widget.SetName("one")
		if err := w.Create(t.Context(), widget); err != nil {
			t.Fatal(err)
		}
	}
}

func untilSaid(t *testing.T, said *fixture.Notes, want ...string) {
	t.Helper()
	var all []string
	cluster.Eventually(t, "handlers run", func(context.Context) error {
		all = append(all, said.Said()...)
		slices.Sort(all)
		if !slices.Equal(all, want) {
			return fmt.Errorf("they ran for %q, want %q", all, want)
		}
		return nil
	})
}

func (w *world) namespacesComeAndGo(t *testing.T) {
	w.account = w.Account(t, "everywhere", slices.Concat(kindRules(), []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	})...)
	said := &fixture.Notes{}
	w.makeIn(t, "app-1", "app-x", "other")
	_, health, shown := w.serveNamespaces(t, said, "app-*,!app-x*")
	untilSaid(t, said, "app-1/one")
	w.makeIn(t, "app-x2", "app-2")
	untilSaid(t, said, "app-2/one")
	answers(t, health, http.StatusOK, "ok")
	answers(t, shown, http.StatusOK, watchMetric("app-2", 1))
	w.Kubectl(t, "", "delete", "namespace", "app-2", "--wait")
	cluster.Eventually(t, "the watch of a namespace that is gone is forgotten", func(ctx context.Context) error {
		_, text, err := cluster.Fetch(ctx, shown)
		if err == nil && strings.Contains(text, watchMetric("app-2", 1)) {
			err = errors.New("it is not")
		}
		return err
	})
	w.makeIn(t, "app-2")
	untilSaid(t, said, "app-2/one")
	answers(t, health, http.StatusOK, "ok")
}

func (w *world) namespacesWithoutRights(t *testing.T) {
	w.account = w.Account(t, "somewhere")
	w.makeIn(t, "team-1", "team-2", "team-x")
	w.permit(t, "team-1", "somewhere")
	said := &fixture.Notes{}
	log, health, shown := w.serveNamespaces(t, said, "team-1", "team-2", "team-x*")
	untilSaid(t, said, "team-1/one")
	answers(t, health, http.StatusOK, "ok")
	answers(t, shown, http.StatusOK, watchMetric("team-2", 0))
	answers(t, shown, http.StatusOK, watchMetric("team-1", 1))
	told := func(words string) {
		t.Helper()
		cluster.Until(t, words, func() bool { return log.Count("msg="+words) == 1 })
	}
	told("cannot list or watch namespaces, serving only those given by name")
	told("not watching namespace: forbidden; will retry")
	w.permit(t, "team-2", "somewhere")
	untilSaid(t, said, "team-2/one")
	answers(t, shown, http.StatusOK, watchMetric("team-2", 1))
	told("cannot list or watch namespaces, serving only those given by name")
	told("not watching namespace: forbidden; will retry")
	answers(t, health, http.StatusOK, "ok")
}

// permit lets an account handle widgets in a namespace.
func (w *world) permit(t *testing.T, namespace, account string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: account, Namespace: namespace}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: kindRules()}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: "default"}},
	}
	for _, err := range []error{w.Create(t.Context(), role), w.Create(t.Context(), binding)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
