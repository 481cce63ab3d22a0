package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// labelled makes a Service with the label of its version. Its handler has this name.
func labelled(handler, version string) func(*einmaltest.Process) *einmal.Operator {
	return func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New("fine.example.com", einmal.Applies(&corev1.Service{}))
		einmal.For[corev1.ConfigMap](op).Reconcile(handler, func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return c.Apply(ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name, Labels: map[string]string{"by": version}},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			})
		})
		return op
	}
}

// upgraded updates an operator while it handles a ConfigMap, and restarts it later.
func upgraded(old, current func(*einmaltest.Process) *einmal.Operator) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.UpgradeFrom(old)
		w.Start(current)
		w.Create(configNamed("one"))
		w.Advance(10 * time.Minute)
		w.Restart()
		w.Advance(10 * time.Minute)
	}
}

// A correct update passes, also where handlers have other names, and where the operator restarts after the update.
func TestACorrectUpdatePasses(t *testing.T) {
	for name, scenario := range map[string]einmaltest.Scenario{
		"the same handler":               upgraded(labelled("ensure", "old"), labelled("ensure", "new")),
		"a handler that has a new name":  upgraded(labelled("ensure", "old"), labelled("keep", "new")),
		"the version before is the same": upgraded(labelled("ensure", "new"), labelled("ensure", "new")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Updates)); finding != nil {
				t.Errorf("the finding is %v", finding)
			}
		})
	}
}

// A new version that does not know what the old one has done does it again.
func TestAnUpdateThatForgetsIsFound(t *testing.T) {
	version := func(mark string) func(p *einmaltest.Process) *einmal.Operator {
		return func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("broken.example.com", einmal.Permissions(&corev1.Secret{}, "create", "get"))
			einmal.For[corev1.ConfigMap](op).OnResume("charge", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: mark}}
				if err := c.Client.Get(ctx, client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
					return err
				}
				if err := p.Effect("charge "+c.Object.Name, func() (any, error) { return nil, nil }); err != nil {
					return err
				}
				return client.IgnoreAlreadyExists(c.Client.Create(ctx, made))
			})
			return op
		}
	}
	finding := einmaltest.Search(t, upgraded(version("old"), version("new")), einmaltest.Only(einmaltest.Updates))
	if finding == nil || !strings.Contains(finding.String(), "effect charge one: it happened 2 times, and once without faults") {
		t.Errorf("the finding is %v", finding)
	}
}
