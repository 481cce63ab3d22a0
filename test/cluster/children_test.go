package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

func (w *world) children(t *testing.T) {
	account := w.Account(t, "parent",
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "widgets/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"get", "create", "patch"}})
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "default"}, Data: map[string]string{"k": "theirs"}}
	if err := w.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	configMap := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{"k": "ours"}}
	}
	refusals := make(chan []error, 1)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	einmal.For[fixture.Widget](op).OnCreate("apply", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		refusals <- []error{
			c.Apply(ctx, configMap("default", "foreign")),
			c.Apply(ctx, configMap("kube-system", "elsewhere")),
			c.Apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}),
			c.Apply(ctx, configMap("", "")),
		}
		child, labels := configMap("", "child"), einmal.CopyLabels("*")
		err := errors.Join(c.Apply(ctx, child, labels), c.Apply(ctx, configMap("", "child"), labels), c.Apply(ctx, configMap("", "adopted"), einmal.Adopt()))
		c.Object.Status.Phase = "applied " + string(child.UID)
		return err
	})
	adopted := configMap("default", "adopted")
	if err := w.Create(t.Context(), adopted); err != nil {
		t.Fatal(err)
	}
	stop := w.run(t, op, account)
	manifest := strings.Replace(fixture.StatusCarrier().Manifest("parent", 1), "namespace", "labels: {team: a}, namespace", 1) +
		"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside, namespace: default}\n"
	applySet := func() string {
		return w.Kubectl(t, manifest, "apply", "--prune", "--applyset=parents", "--namespace=default", "-f", "-")
	}
	applySet()
	wanted := []string{"einmal.Adopt()", "garbage collector", "garbage collector", "metadata.name is empty"}
	for i, err := range <-refusals {
		if err == nil || !strings.Contains(err.Error(), wanted[i]) {
			t.Errorf("refusal %d: got %v, want %q", i, err, wanted[i])
		}
	}
	child := &corev1.ConfigMap{}
	cluster.Eventually(t, "the child is there", func(ctx context.Context) error {
		return w.Get(ctx, types.NamespacedName{Namespace: "default", Name: "child"}, child)
	})
	w.phase(t, "parent", "applied "+string(child.UID))
	if owner := metav1.GetControllerOf(child); owner == nil || owner.Kind != "Widget" || owner.Name != "parent" || child.Labels["team"] != "a" {
		t.Errorf("owner %v, labels %v", owner, child.Labels)
	}
	// The ConfigMap of the manifest makes kubectl look for ConfigMaps that have the label of the set, and are not in the manifest.
	said, uid := applySet(), child.UID
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil || child.UID != uid || child.DeletionTimestamp != nil || strings.Contains(said, "pruned") {
		t.Errorf("the child after kubectl apply --prune: %v, %+v\n%s", err, child.ObjectMeta, said)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Data["k"] != "theirs" || len(foreign.OwnerReferences) > 0 {
		t.Errorf("the foreign object was touched: %v, %v", foreign, err)
	}
	w.delete(t, fixture.StatusCarrier(), "parent")
	w.collected(t, "child")
	w.collected(t, "adopted")
	stop()
}

// collected waits until the garbage collector has taken a ConfigMap.
func (w *world) collected(t *testing.T, name string) {
	t.Helper()
	cluster.Eventually(t, name+" is collected", func(ctx context.Context) error {
		err := w.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
}
