package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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

// countedLeases plays a controller of Services: each Service has a Lease, which says how many there have been of its name.
func countedLeases(w *einmaltest.World) {
	made := int32(0)
	w.React(&corev1.ServiceList{}, func(service client.Object) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: service.GetNamespace(), Name: service.GetName()}}
		if w.Get(lease) {
			if metav1.IsControlledBy(lease, service) {
				return
			}
			w.Delete(lease)
		}
		made++
		w.Create(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: service.GetNamespace(), Name: service.GetName(),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
			},
			Spec: coordinationv1.LeaseSpec{LeaseTransitions: &made},
		})
	})
}

// A child that controls other objects takes them with it. What its controller makes instead differs, and the operator cannot change that.
func TestAChildThatControlsOthersIsNotTakenAway(t *testing.T) {
	scenario := appliedChild(countedLeases, func(data string) client.Object {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "child", Annotations: map[string]string{"for": data}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}, einmal.Owns[corev1.Service]())
	if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Children, einmaltest.Drift)); finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}

// A child that was deleted or replaced has had fewer changes than without faults.
func TestTheGenerationOfAChildThatIsTakenAwayIsNotCompared(t *testing.T) {
	scenario := appliedChild(func(*einmaltest.World) {}, func(data string) client.Object {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "child"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": data}}},
		}
	}, einmal.Owns[policyv1.PodDisruptionBudget]())
	if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Children, einmaltest.Drift)); finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}

// appliedChild applies a child for a ConfigMap, whose data changes. Beside is played too.
func appliedChild(beside einmaltest.Scenario, child func(data string) client.Object, owns einmal.ReconcileOption) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.AllowUnchecked("PodDisruptionBudget.spec")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("drift.example.com", einmal.Applies(child("")))
			einmal.For[corev1.ConfigMap](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Apply(ctx, child(c.Object.Data["data"]))
			}, owns)
			return op
		})
		beside(w)
		one := configNamed("one")
		w.Create(one)
		w.Advance(10 * time.Minute)
		w.Patch(one, `{"data":{"data":"second"}}`)
		w.Advance(10 * time.Minute)
	}
}
