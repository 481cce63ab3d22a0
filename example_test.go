package einmal_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An operator with all its verbs. main ends with op.Main(), which knows run, crds and version.
func Example() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Object.Status.Phase = "Made"
		return nil
	})
	widgets.OnUpdate("resize", func(_ context.Context, c *einmal.Change[Widget]) error {
		for _, difference := range c.Diff {
			c.Log.Info("resized", "from", difference.Old, "to", difference.New)
		}
		return nil
	}, einmal.Fields("spec.size"))
	widgets.OnDelete("unmake", func(context.Context, *einmal.Change[Widget]) error { return nil })
	// op.Main()

	// Output:
}

// managerWith returns a manager that runs an operator beside a controller. Each replica has one, and the elected replica acts.
func managerWith(config *rest.Config, op *einmal.Operator, plain reconcile.Reconciler) (manager.Manager, error) {
	mgr, err := op.NewManager(config, manager.Options{LeaderElection: true, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(plain); err != nil {
		return nil, err
	}
	return mgr, op.SetupWithManager(mgr)
}

// An operator runs beside a controller in one manager, with one cache and one Lease. Then mgr.Start runs both.
func ExampleOperator_SetupWithManager() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("widgets"))
	einmal.For[Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Object.Status.Phase = "Made"
		return nil
	})
	plain := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	_, err := managerWith(&rest.Config{Host: "https://cluster.invalid"}, op, plain)
	fmt.Println(err)
	// Output: <nil>
}

// Options that do not fit are errors. Here, a shutdown would end handlers before their time.
func ExampleOperator_NewManager() {
	op := einmal.New("widgets.example.com", einmal.ShutdownTimeout(time.Minute))
	short := 30 * time.Second
	_, err := op.NewManager(&rest.Config{Host: "https://cluster.invalid"}, manager.Options{GracefulShutdownTimeout: &short})
	fmt.Println(err)
	// Output: operator widgets.example.com: the manager's option GracefulShutdownTimeout: leave it out, or set at least 1m4s: the option ShutdownTimeout and some seconds to save
}

// A create handler applies the whole desired child; a second run does no harm.
func ExampleChange_Apply() {
	makeConfig := func(ctx context.Context, c *einmal.Change[Widget]) error {
		config := &corev1.ConfigMap{Data: map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}}
		config.Name = c.Object.Name
		return c.Apply(ctx, config)
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("make-config", makeConfig)
	widgets.OnUpdate("update-config", makeConfig, einmal.Fields("spec.size"))
	// Output:
}

// Adopt takes over an object that exists without the owner's reference.
func ExampleAdopt() {
	_ = func(ctx context.Context, c *einmal.Change[Widget]) error {
		config := &corev1.ConfigMap{}
		config.Name = "made-by-hand"
		return c.Apply(ctx, config, einmal.Adopt())
	}
	// Output:
}

// GVK names the kind of untyped objects.
func ExampleGVK() {
	op := einmal.New("gadgets.example.com")
	gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK("example.com", "v1", "Gadget"))
	gadgets.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		return unstructured.SetNestedField(c.Object.Object, "Made", "status", "phase")
	})
	// Output:
}

// An update handler sees what changed since it last succeeded, also while the operator was down.
func ExampleKind_OnUpdate() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnUpdate("shrink", func(_ context.Context, c *einmal.Change[Widget]) error {
		if before, known := c.Old(); known && before.Spec.Size > c.Object.Spec.Size {
			return einmal.Permanent(fmt.Errorf("size %d is below the present %d: make a new widget", c.Object.Spec.Size, before.Spec.Size))
		}
		return nil
	}, einmal.Fields("spec.size"))
	// Output:
}

// A delete handler keeps the object until it has succeeded.
func ExampleKind_OnDelete() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnDelete("remove-config", func(ctx context.Context, c *einmal.Change[Widget]) error {
		config := &corev1.ConfigMap{}
		config.Namespace, config.Name = c.Object.Namespace, c.Object.Name
		return client.IgnoreNotFound(c.Client.Delete(ctx, config))
	})
	// Output:
}

// A resume handler runs once per process for objects that were handled before.
func ExampleKind_OnResume() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnResume("greet", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Log.Info("still here", "size", c.Object.Spec.Size)
		return nil
	})
	// Output:
}

// RetryAfter with nil waits: it counts no attempt, and however long it takes it is written once.
func ExampleRetryAfter() {
	_ = func(ctx context.Context, c *einmal.Change[Widget]) error {
		pod := &corev1.Pod{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), pod); err != nil {
			return err // Retried with back-off.
		}
		if pod.Status.Phase != corev1.PodRunning {
			return einmal.RequeueAfter(time.Second)
		}
		return nil
	}
	// Output:
}

// Permanent ends the attempts until what the handler looks at changes.
func ExamplePermanent() {
	_ = func(_ context.Context, c *einmal.Change[Widget]) error {
		if c.Object.Spec.Size > 100 {
			return einmal.Permanent(fmt.Errorf("size %d is above 100, the most that there is", c.Object.Spec.Size))
		}
		return nil
	}
	// Output:
}

// A step that has succeeded is passed by in later attempts: one account is made, however often the invitation fails.
func ExampleStep() {
	invite := func(ctx context.Context, c *einmal.Change[Widget]) error {
		account, err := einmal.StepResult(ctx, c, "account", func(context.Context) (fixture.Part, error) {
			return fixture.Part{Name: "account-of-" + c.Object.Name}, nil // Made by another system, say.
		})
		if err != nil {
			return err
		}
		return einmal.Step(ctx, c, "invite", func(context.Context) error {
			c.Object.Status.Phase = "Invited to " + account.Name
			return nil
		})
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("invite", invite)
	// Output:
}

// Each makes a step of each item. What has failed is tried again, what is done is not.
func ExampleEach() {
	makeRooms := func(ctx context.Context, c *einmal.Change[Widget]) error {
		rooms := []string{"kitchen", "bath", "attic"}
		makeRoom := func(ctx context.Context, room string) error {
			config := &corev1.ConfigMap{}
			config.Name = c.Object.Name + "-" + room
			return c.Apply(ctx, config)
		}
		return einmal.Each(ctx, c, rooms, strings.Clone, makeRoom)
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("make-rooms", makeRooms, einmal.Concurrency(2))
	// Output:
}
