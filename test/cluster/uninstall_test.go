package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The command uninstall needs the rights that its help names and no other; and a running operator shows its metrics.
func TestUninstallOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	w.allowState(t)
	made := func() *einmal.Operator {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("default"))
		widgets, of := fixture.Widgets(op)
		fixture.Undoing(widgets, of.Name)
		gadgets, as := fixture.Gadgets(op)
		fixture.Undoing(gadgets, as.Name)
		return op
	}
	address := cluster.FreeAddress(t)
	stop := fixture.Run(t, made(), w.account, einmal.RunOptions{SingleReplica: true, MetricsAddress: address})
	for _, use := range fixture.Carriers() {
		w.marked(t, use, "kept")
		w.marked(t, use, "stuck")
	}
	shown := w.metrics(t, address)
	expectIn(t, shown,
		`einmal_handler_runs_total{handler="make",kind="Widget.test.einmal.dev",operator="tests.einmal.dev",outcome="done",reason="create"}`,
		`controller_runtime_reconcile_total{`)
	stop()
	w.watermark(t, fixture.Carriers()[0], now())
	for _, use := range fixture.Carriers() {
		w.Kubectl(t, "", "delete", use.Resource, "stuck", "--wait=false")
	}
	account := w.Account(t, "uninstaller",
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "gadgets"}, Verbs: []string{"get", "list", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets/status", "gadgets/status"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{fixture.Identity}, Verbs: []string{"list", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{fixture.Identity}, Verbs: []string{"get", "list", "delete"}})
	var out strings.Builder
	if err := hook.Of().Uninstall(t.Context(), made(), account, &out); err != nil {
		t.Fatal(err)
	}
	expectIn(t, out.String(),
		"Widget default/kept: removed record, finalizer\n", "Gadget default/kept: removed record, finalizer\n",
		"Widget default/stuck: removed record, finalizer; it is being deleted, its delete handlers do not run, removing the finalizer deletes it\n",
		"ConfigMap default/tests.einmal.dev: removed\n",
		"objects: 4 stripped, 2 of them without their delete handlers; failed: 0\n")
	left := w.Kubectl(t, "", "get", "widgets,gadgets,configmaps", "-o", "json")
	if strings.Contains(left, fixture.Identity) || strings.Contains(left, `"stuck"`) || !strings.Contains(left, `"kept"`) {
		t.Errorf("left are %s", left)
	}
}

// marked makes an object and waits until it has a finalizer and a record.
func (w *world) marked(t *testing.T, use fixture.Carrier, name string) {
	t.Helper()
	w.create(t, use, name)
	cluster.Eventually(t, name+" is handled", func(ctx context.Context) error {
		found, err := w.get(ctx, use, name)
		if err == nil && (use.Record(found) == "" || len(found.GetFinalizers()) != 1) {
			err = errors.New("not yet")
		}
		return err
	})
}

func expectIn(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// metrics is what /metrics shows.
func (w *world) metrics(t *testing.T, address string) (shown string) {
	t.Helper()
	cluster.Eventually(t, "metrics are shown", func(ctx context.Context) error {
		code, text, err := cluster.Fetch(ctx, "http://"+address+"/metrics")
		if shown = text; err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %s", code, shown)
		}
		return err
	})
	return shown
}
