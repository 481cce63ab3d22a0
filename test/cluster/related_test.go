package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

var errSameChild = errors.New("it is still the child that was deleted")

// On a real API server, a child that an administrator deletes is created again by one write. The handler runs again when it sees the child, and
// applies a Secret once more: only the metadata of owned Secrets is watched. Then nothing more is written.
func (w *world) childComesBack(t *testing.T) {
	verbs := []string{"get", "list", "watch", "create", "patch"}
	account := w.Account(t, "owner",
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "widgets/status"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: verbs})
	j := &fixture.Journal{}
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	sizes := einmal.Index(op, "sizes", func(widget *fixture.Widget) (map[string]int, error) {
		return map[string]int{widget.Name: widget.Spec.Size}, nil
	})
	einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		j.Add(c.Object.Name, fmt.Sprint(c.TriggeredBy, sizes.Get(c.Object.Name)))
		secret := &corev1.Secret{StringData: map[string]string{"size": "1"}}
		secret.Name = c.Object.Name
		return errors.Join(c.Apply(ctx, fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size)), c.Apply(ctx, secret))
	}, einmal.Owns[corev1.ConfigMap](), einmal.Owns[corev1.Secret]())
	stop := w.run(t, op, account)
	w.create(t, fixture.StatusCarrier(), "owner")
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "default", "owner"
	for _, one := range []struct {
		resource string
		child    client.Object
		writes   int
	}{{"configmaps", fixture.NewConfigMap("owner", 1), 1}, {"secrets", secret, 2}} {
		resource, child := one.resource, one.child
		cluster.Eventually(t, "the child is there", func(ctx context.Context) error { return w.Get(ctx, client.ObjectKeyFromObject(child), child) })
		w.quiet(t, fixture.Carrier{Resource: resource})
		gone, before := child.GetUID(), w.Writes(t, resource)
		if err := w.Delete(t.Context(), child); err != nil {
			t.Fatal(err)
		}
		cluster.Eventually(t, "the child comes back", func(ctx context.Context) error { return w.back(ctx, child, gone) })
		w.quiet(t, fixture.Carrier{Resource: resource})
		if made := w.Writes(t, resource) - before; made != 1+one.writes {
			t.Errorf("%s: %d writes, want the deletion and %d of the operator; it was called for %q", resource, made, one.writes, j.Of("owner"))
		}
	}
	calls := j.Of("owner")
	for _, want := range []string{"[] [1]", "[ConfigMap default/owner deleted] [1]", "[Secret default/owner deleted] [1]"} {
		if !slices.Contains(calls, want) {
			t.Errorf("it was not called for %s: %q", want, calls)
		}
	}
	w.delete(t, fixture.StatusCarrier(), "owner")
	w.collected(t, "owner")
	stop()
}

// back reports whether a child is another one than the deleted one.
func (w *world) back(ctx context.Context, child client.Object, gone types.UID) error {
	if err := w.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return err
	}
	if child.GetUID() == gone {
		return errSameChild
	}
	return nil
}

// On a real API server, a Deployment that is not wanted any more is deleted with what belongs to it, and nothing else is. The rights are those that
// the operator prints.
func (w *world) childrenPruned(t *testing.T) {
	account := w.Account(t, "pruner",
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "widgets/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		var wanted []string
		for n := range c.Object.Spec.Size {
			child := fixture.NewDeployment(fmt.Sprintf("pruned-%d", n))
			child.Spec.Replicas = new(int32)
			if err := c.Apply(ctx, child); err != nil {
				return err
			}
			wanted = append(wanted, child.Name)
		}
		return c.Prune(ctx, &appsv1.Deployment{}, wanted...)
	}, einmal.Prunes[appsv1.Deployment]())
	stop := w.run(t, op, account)
	defer stop()
	w.Kubectl(t, fixture.StatusCarrier().Manifest("pruner", 2), "create", "-f", "-")
	sets := func(ctx context.Context) ([]string, error) {
		found := &appsv1.ReplicaSetList{}
		err := w.List(ctx, found, client.InNamespace("default"))
		var owners []string
		for i := range found.Items {
			if name := metav1.GetControllerOf(&found.Items[i]).Name; strings.HasPrefix(name, "pruned-") {
				owners = append(owners, name)
			}
		}
		slices.Sort(owners)
		return owners, err
	}
	for _, step := range []struct {
		size int
		want []string
	}{{2, []string{"pruned-0", "pruned-1"}}, {1, []string{"pruned-0"}}, {0, nil}} {
		w.Kubectl(t, "", "patch", "widget", "pruner", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"size":%d}}`, step.size))
		cluster.Eventually(t, "only wanted children are there", func(ctx context.Context) error {
			if has, err := sets(ctx); err != nil || !slices.Equal(has, step.want) {
				return fmt.Errorf("there are ReplicaSets of %v, want %v (%w)", has, step.want, err)
			}
			return nil
		})
	}
	w.delete(t, fixture.StatusCarrier(), "pruner")
}
