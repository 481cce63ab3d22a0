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

// checkedChild makes a Service for a ConfigMap, and handles it when the ConfigMap changes.
func checkedChild(check func(ctx context.Context, p *einmaltest.Process, api client.Client, child *corev1.Service) error) einmaltest.Scenario {
	child := func() *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	return func(w *einmaltest.World) {
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("broken.example.com", einmal.Permissions(&corev1.Service{}, "create", "get", "update"))
			configs := einmal.For[corev1.ConfigMap](op)
			configs.OnCreate("make", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return client.IgnoreAlreadyExists(c.Client.Create(ctx, child()))
			})
			configs.OnUpdate("check", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return check(ctx, p, c.Client, child())
			})
			return op
		})
		one := configNamed("one")
		w.Create(one)
		w.Advance(10 * time.Minute)
		w.Patch(one, `{"data":{"data":"second"}}`)
		w.Advance(10 * time.Minute)
	}
}

// Other writers change children before handlers read and write them.
func TestWhatOthersDoIsFound(t *testing.T) {
	dropped := func(ctx context.Context, p *einmaltest.Process, api client.Client, child *corev1.Service) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(child), child)
		if apierrors.IsNotFound(err) {
			return p.Effect("drop the database", func() (any, error) { return nil, nil })
		}
		return err
	}
	relabelled := func(ctx context.Context, _ *einmaltest.Process, api client.Client, child *corev1.Service) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return err
		}
		child.Labels = map[string]string{"app": "one"}
		return api.Update(ctx, child)
	}
	for _, test := range []struct {
		name     string
		by       einmaltest.Dimension
		scenario einmaltest.Scenario
		says     []string
	}{
		{
			"a deletion before a read", einmaltest.Children, checkedChild(dropped),
			[]string{"child deleted by another writer before: get services default/child by check", "effect drop the database: it happened once, and never"},
		},
		{
			"labels that are written as a whole", einmaltest.Children, checkedChild(relabelled),
			[]string{"child edited by another writer before: update services", "another writer has set the label example.com/edited"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, test.scenario, einmaltest.Only(test.by))
			for _, part := range test.says {
				if finding == nil || !strings.Contains(finding.String(), part) {
					t.Errorf("the finding is %v, want %q", finding, part)
				}
			}
		})
	}
}

// A handler that keeps labels of others, and leaves a child alone that is gone, is correct.
func TestACorrectHandlerOfChildrenPasses(t *testing.T) {
	kept := func(ctx context.Context, _ *einmaltest.Process, api client.Client, child *corev1.Service) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return client.IgnoreNotFound(err)
		}
		metav1.SetMetaDataLabel(&child.ObjectMeta, "app", "one")
		return client.IgnoreNotFound(api.Update(ctx, child))
	}
	finding := einmaltest.Search(t, checkedChild(kept), einmaltest.Only(einmaltest.Users, einmaltest.Children))
	if finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}
