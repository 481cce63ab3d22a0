package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// ownedService keeps a Service for a ConfigMap.
func ownedService(keep func(ctx context.Context, c *einmal.Change[corev1.ConfigMap], child *corev1.Service) error) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("drift.example.com", einmal.Applies(&corev1.Service{}))
			einmal.For[corev1.ConfigMap](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return keep(ctx, c, &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: c.Object.Name},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": c.Object.Name}},
				})
			}, einmal.Owns[corev1.Service]())
			return op
		})
		w.Create(configNamed("one"))
		w.Advance(10 * time.Minute)
	}
}

// unlessThere applies a child if there is none.
func unlessThere(ctx context.Context, c *einmal.Change[corev1.ConfigMap], child *corev1.Service) error {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(child), &corev1.Service{}); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		return nil
	}
	return c.Apply(ctx, child)
}

// unlessDeleted applies a child, but not once more if it was deleted.
func unlessDeleted(ctx context.Context, c *einmal.Change[corev1.ConfigMap], child *corev1.Service) error {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(child), &corev1.Service{})
	if client.IgnoreNotFound(err) != nil || err != nil && c.Object.Annotations["example.com/made"] != "" {
		return client.IgnoreNotFound(err)
	}
	metav1.SetMetaDataAnnotation(&c.Object.ObjectMeta, "example.com/made", "yes")
	return c.Apply(ctx, child)
}

// notedUID applies a child, and notes the uid of the first one for ever.
func notedUID(ctx context.Context, c *einmal.Change[corev1.ConfigMap], child *corev1.Service) error {
	if err := c.Apply(ctx, child); err != nil {
		return err
	}
	if c.Object.Annotations["example.com/child"] == "" {
		metav1.SetMetaDataAnnotation(&c.Object.ObjectMeta, "example.com/child", string(child.UID))
	}
	return nil
}

// An operator that owns its children repairs what others do to them while nothing else happens.
func TestAnOperatorThatDoesNotRepairItsChildrenIsFound(t *testing.T) {
	for _, test := range []struct {
		name string
		keep func(context.Context, *einmal.Change[corev1.ConfigMap], *corev1.Service) error
		says []string
	}{
		{"an edit that stays", unlessThere, []string{
			"child's data edited by another writer while nothing happens: idle services default/one #1", "Service default/one: what is left differs", "one-edited",
		}},
		{"a child that stays deleted", unlessDeleted, []string{
			"child deleted by another writer while nothing happens: idle services default/one #1", "Service default/one: it is missing",
		}},
		{"the uid of a child that was replaced", notedUID, []string{
			"child replaced by another writer while nothing happens: idle services default/one #1", "ConfigMap default/one: what is left differs",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, ownedService(test.keep), einmaltest.Only(einmaltest.Drift))
			for _, part := range test.says {
				if finding == nil || !strings.Contains(finding.String(), part) {
					t.Errorf("the finding is %v, want %q", finding, part)
				}
			}
		})
	}
}

// An operator that applies its children each time is correct. One that does not own them learns of nothing, so they are left alone.
func TestAnOperatorThatRepairsItsChildrenPasses(t *testing.T) {
	for name, scenario := range map[string]einmaltest.Scenario{
		"applied each time": ownedService(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap], child *corev1.Service) error {
			return c.Apply(ctx, child)
		}),
		"not owned": configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
			return c.Apply(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		}, einmal.Applies(&corev1.Service{})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Drift)); finding != nil {
				t.Errorf("the finding is %v", finding)
			}
		})
	}
}
