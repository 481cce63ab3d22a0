package einmaltest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// handlerOfConfigs handles a ConfigMap in one process of an operator.
type handlerOfConfigs func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error

// broken is an operator with one bug, which Explore must find.
type broken struct {
	name     string
	scenario einmaltest.Scenario
	options  []einmaltest.Option
	// says is what the report must have in it.
	says []string
}

// configHandled is the scenario of an operator that handles a ConfigMap. There is a Secret named known.
func configHandled(handle handlerOfConfigs, options ...einmal.OperatorOption) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		operator := func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("broken.example.com", options...)
			einmal.For[corev1.ConfigMap](op).OnCreate("handle", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return handle(ctx, p, c)
			})
			return op
		}
		w.Install(operator)
		w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "known"}})
		w.Start(operator)
		w.Create(configNamed("one"))
		w.Advance(10 * time.Minute)
	}
}

func configNamed(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// TestABrokenOperatorIsFound shows that Explore finds each bug, and that its report names the reason.
func TestABrokenOperatorIsFound(t *testing.T) {
	for _, test := range slices.Concat(brokenByThemselves(), brokenRights(), brokenEffects(), brokenObjects(), brokenByOthers()) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, test.scenario, test.options...)
			if finding == nil {
				t.Fatal("nothing is found")
			}
			for _, part := range test.says {
				if !strings.Contains(finding.String(), part) {
					t.Errorf("the report does not say %q:\n%s", part, finding)
				}
			}
		})
	}
}

// brokenByThemselves lists operators that do not work without any fault either.
func brokenByThemselves() []broken {
	charged := map[string]bool{} // It stands for a variable of a package.
	return []broken{
		{
			name: "a handler that fails each time",
			scenario: configHandled(func(context.Context, *einmaltest.Process, *einmal.Change[corev1.ConfigMap]) error {
				return errors.New("not yet")
			}),
			says: []string{"nothing goes wrong", "handler handle: it still fails, without any fault: ConfigMap default/one"},
		},
		{
			name: "a handler that fails for good",
			scenario: configHandled(func(context.Context, *einmaltest.Process, *einmal.Change[corev1.ConfigMap]) error {
				return einmal.Permanent(errors.New("never"))
			}),
			says: []string{"nothing goes wrong", "handler handle: it has failed for good"},
		},
		{
			name: "a handler that waits for what does not come",
			scenario: configHandled(func(context.Context, *einmaltest.Process, *einmal.Change[corev1.ConfigMap]) error {
				return einmal.RequeueAfter(time.Minute)
			}),
			says: []string{"nothing goes wrong", "handler handle: it still waits for another call"},
		},
		{
			name: "a package-level variable that remembers what is done",
			scenario: configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				if charged[c.Object.Name] {
					return nil
				}
				return p.Effect("charge "+c.Object.Name, func() (any, error) {
					charged[c.Object.Name] = true
					return nil, nil
				})
			}),
			says: []string{"nothing goes wrong", "two runs without faults differ", "package-level variables", "effect charge one"},
		},
	}
}

// brokenRights lists operators without a right that they need.
func brokenRights() []broken {
	return []broken{
		{
			name: "no right to create a Secret",
			scenario: configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name}})
			}),
			says: []string{"nothing goes wrong", "create secrets default/one by handle: the operator has no right to do this"},
		},
		{
			name: "the right to delete, for the deletion of a collection",
			scenario: configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(c.Object.Namespace))
			}, einmal.Permissions(&corev1.Secret{}, "delete")),
			says: []string{"nothing goes wrong", "deletecollection secrets", "the operator has no right to do this"},
		},
		{
			name: "the right to update, for a PUT that creates",
			scenario: configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Client.Update(ctx, &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: c.Object.Name},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
				})
			}, einmal.Permissions(&corev1.Service{}, "update")),
			says: []string{"nothing goes wrong", "update services default/one by handle: the operator has no right to do this"},
		},
	}
}

// brokenObjects lists operators that leave other objects behind than they should.
func brokenObjects() []broken {
	return []broken{
		{
			name: "a namespace with a generated name, made twice",
			scenario: configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "room-"}})
			}, einmal.Permissions(&corev1.Namespace{}, "create")),
			says: []string{"Namespace /room-<generated 2>: it is not there when nothing goes wrong"},
		},
		{
			name: "a custom kind with the name of a built-in one", scenario: twoServices,
			says: []string{"Service.example.com default/one: what is left differs"},
		},
		{
			name: "a certificate whose expiry moves", scenario: configHandled(certified, einmal.Applies(&coordinationv1.Lease{})),
			options: []einmaltest.Option{einmaltest.CompareTime("Lease", "spec.renewTime", einmaltest.SetOnce())},
			says:    []string{"Lease.coordination.k8s.io default/one, spec.renewTime: it has had 2 values"},
		},
		{
			name: "a certificate that expires much later", scenario: configHandled(certified, einmal.Applies(&coordinationv1.Lease{})),
			options: []einmaltest.Option{einmaltest.CompareTime("Lease", "spec.renewTime", einmaltest.Within(time.Minute))},
			says:    []string{"Lease.coordination.k8s.io default/one, spec.renewTime: it is ", "want at most 1m0s between them"},
		},
	}
}

// certified makes a certificate that is good for a day from now on.
func certified(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
	expires := metav1.NewMicroTime(time.Now().Add(24 * time.Hour))
	return c.Apply(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}, Spec: coordinationv1.LeaseSpec{RenewTime: &expires},
	})
}

// Times are not compared where no rule says how: most of them say when something happened.
func TestATimeWithoutARuleIsNotCompared(t *testing.T) {
	scenario := configHandled(certified, einmal.Applies(&coordinationv1.Lease{}))
	if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Crashes)); finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}

// twoServices handles a kind named Service, makes a Service of Kubernetes with the same name, and tells in its own object which attempt it was.
func twoServices(w *einmaltest.World) {
	of := einmal.GVK("example.com", "v1", "Service")
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New("broken.example.com", einmal.CRDs(definitions(w)), einmal.Applies(&corev1.Service{}))
		einmal.For[unstructured.Unstructured](op, of).OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: c.Object.GetName()}}
			made.Spec.Ports = []corev1.ServicePort{{Port: 80}}
			if err := c.Apply(ctx, made); err != nil {
				return err
			}
			return unstructured.SetNestedField(c.Object.Object, fmt.Sprintf("attempt %d", c.Attempt), "data", "made")
		})
		return op
	})
	one := &unstructured.Unstructured{}
	one.SetAPIVersion("example.com/v1")
	one.SetKind("Service")
	one.SetNamespace("default")
	one.SetName("one")
	w.Create(one)
	w.Advance(10 * time.Minute)
}

func definitions(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/tenants.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// brokenByOthers lists operators that undo what others do.
func brokenByOthers() []broken {
	return []broken{{
		name: "a child that is written as a whole", scenario: rewrittenChild, options: []einmaltest.Option{einmaltest.Without(einmaltest.Wipes)},
		says: []string{"child edited by another writer before: update secrets default/one-child by rewrite", "what others write is to stay"},
	}}
}

// rewrittenChild replaces a Secret without a resource version, so that it overwrites whatever others have written.
func rewrittenChild(w *einmaltest.World) {
	child := func(data string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one-child"}, StringData: map[string]string{"data": data}}
	}
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New("broken.example.com", einmal.Permissions(&corev1.Secret{}, "create", "update"))
		configs := einmal.For[corev1.ConfigMap](op)
		configs.OnCreate("make", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return client.IgnoreAlreadyExists(c.Client.Create(ctx, child("first")))
		})
		configs.OnUpdate("rewrite", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return c.Client.Update(ctx, child(c.Object.Data["data"]))
		})
		return op
	})
	one := configNamed("one")
	w.Create(one)
	w.Advance(10 * time.Minute)
	w.Patch(one, `{"data":{"data":"second"}}`)
	w.Advance(10 * time.Minute)
}

// brokenVariable makes TestRunFailsWhenARunIsNotClean run an operator that is broken.
const brokenVariable = "EINMALTEST_BROKEN"

// Run judges its run, too: a test fails whose handlers do not succeed, although it expects nothing.
func TestRunFailsWhenARunIsNotClean(t *testing.T) {
	all := slices.Concat(brokenByThemselves()[:3], brokenRights())
	for i, test := range all {
		if os.Getenv(brokenVariable) == fmt.Sprint(i) {
			einmaltest.Run(t, test.scenario)
			return
		}
	}
	for i, test := range all {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFailsWhenARunIsNotClean$")
			run.Env = append(os.Environ(), brokenVariable+"="+fmt.Sprint(i))
			printed, err := run.CombinedOutput()
			if err == nil {
				t.Error("it passes")
			}
			for _, part := range test.says[1:] {
				if !strings.Contains(string(printed), part) {
					t.Errorf("it does not say %q:\n%s", part, printed)
				}
			}
		})
	}
}

// What a scenario wants to happen is allowed.
func TestAScenarioAllowsWhatItWants(t *testing.T) {
	held := configHandled(func(ctx context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		return c.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name}})
	})
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowForbidden()
		w.AllowUnfinished("handle")
		w.AllowDeleting()
		held(w)
		kept := configNamed("kept")
		kept.Finalizers = []string{"example.com/hold"}
		w.Create(kept)
		w.Delete(kept)
	})
}
