package einmal_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// mistakesOf returns the mistakes in the declarations of an operator. Run returns them too, before it sends any request.
func mistakesOf(op *einmal.Operator) error {
	mgr, err := op.NewManager(&rest.Config{Host: "https://cluster.invalid"}, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	return op.SetupWithManager(mgr)
}

// fakeClient is a client in memory for a test that calls a handler. Apply asks it which kinds have a namespace.
func fakeClient(scheme *runtime.Scheme, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(objects...).Build()
}

// inDevelopment reports whether the operator runs on the machine of a developer.
func inDevelopment() bool { return os.Getenv("WIDGETS_DEVELOPMENT") != "" }

// Several operators of a company have the same limits. How do they share them? A function returns the options, and each operator gives them to
// HandlerDefaults. A handler can still set its own.
func ExampleHandlerOption() {
	limits := func() []einmal.HandlerOption { // In a package of the company.
		return []einmal.HandlerOption{
			einmal.AttemptTimeout(time.Minute), einmal.Backoff(2*time.Second, 10*time.Minute), einmal.MaxAttempts(50),
		}
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.HandlerDefaults(limits()...))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("register", fixture.Nothing)
	widgets.OnCreate("render", fixture.Nothing, einmal.AttemptTimeout(time.Hour))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Two create handlers need the same options, and one of them needs one more. The list has the type of the verb's options: Go passes a list with ...
// only if the types are the same.
func ExampleCreateOption() {
	cautious := []einmal.CreateOption{einmal.OnError(einmal.PolicyFail), einmal.MaxAttempts(5)}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("order", fixture.Nothing, cautious...)
	widgets.OnCreate("insure", fixture.Nothing, slices.Concat(cautious, []einmal.CreateOption{einmal.OwnsStatus("phase")})...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Whether a handler has an option depends on a setting. Build the list step by step.
func ExampleUpdateOption() {
	options := []einmal.UpdateOption{einmal.Fields("spec.size")}
	if inDevelopment() {
		options = append(options, einmal.AlsoAtCreation()) // Developers need not wait for a first change.
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnUpdate("resize", fixture.Nothing, options...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// In a cluster that developers create and throw away, no finalizer must keep an object after the operator has stopped. How is that switched off in
// one place? A FinalizerOption is an option of both verbs that add a finalizer.
func ExampleFinalizerOption() {
	var shared []einmal.FinalizerOption
	if inDevelopment() {
		shared = append(shared, einmal.WithoutFinalizer())
	}
	deletes := []einmal.DeleteOption{einmal.ReleaseOnFailure(), einmal.MaxAttempts(10)}
	daemons := []einmal.DaemonOption{einmal.StopGrace(5 * time.Second), einmal.AbandonAfter(time.Minute)}
	for _, one := range shared {
		deletes, daemons = append(deletes, one), append(daemons, one)
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnDelete("remove-backups", fixture.Nothing, deletes...)
	widgets.OnDelete("remove-users", fixture.Nothing, deletes...)
	widgets.Daemon("watch", fixture.Nothing, daemons...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Some caches that are filled when the operator starts are also needed by delete handlers. So all handlers that fill them have the same options.
func ExampleResumeOption() {
	fill := []einmal.ResumeOption{einmal.AlsoAtDeletion(), einmal.AttemptTimeout(10 * time.Second), einmal.OnError(einmal.PolicyIgnore)}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnResume("fill-prices", fixture.Nothing, fill...)
	widgets.OnResume("fill-quotas", fixture.Nothing, fill...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Which children there are depends on a setting: without an Ingress, the operator needs no permission to watch them.
func ExampleReconcileOption() {
	withIngress := os.Getenv("WIDGETS_INGRESS") != ""
	options := []einmal.ReconcileOption{einmal.Owns[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{})}
	if withIngress {
		options = append(options, einmal.Owns[networkingv1.Ingress](), einmal.Applies(&networkingv1.Ingress{}))
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).Reconcile("keep", fixture.Nothing, options...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Several timers ask the same system. All of them have the same options.
func ExampleTimerOption() {
	patient := []einmal.TimerOption{einmal.InitialDelay(30 * time.Second), einmal.MaxAttempts(3)}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.Timer("check-price", time.Hour, fixture.Nothing, patient...)
	widgets.Timer("check-stock", 10*time.Minute, fixture.Nothing, patient...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Event handlers have no retries, so they take filters and permissions only. Here all of them are for audited objects.
func ExampleEventOption() {
	audited := []einmal.EventOption{
		einmal.Labels("example.com/audit", einmal.Equals("yes")), einmal.PermissionsIn("audit", &corev1.ConfigMap{}, "create"),
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnEvent("write-audit", fixture.Nothing, audited...)
	widgets.OnEvent("count-audit", fixture.Nothing, audited...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// An object exists that the handler did not create. Who allows to take it over? Here the user does, with an annotation.
func ExampleApplyOption() {
	keep := func(ctx context.Context, c *einmal.Change[Widget]) error {
		var options []einmal.ApplyOption
		if c.Object.Annotations["example.com/adopt"] == "yes" {
			options = append(options, einmal.Adopt())
		}
		return c.Apply(ctx, fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size), options...)
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Applies(&corev1.ConfigMap{}))
	einmal.For[Widget](op).Reconcile("keep", keep, einmal.Owns[corev1.ConfigMap]())
	// op.Main()

	change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
	change.Object.UID = "1"
	change.Client = fakeClient(op.Scheme(), fixture.NewConfigMap("one", 7))
	fmt.Println("it is refused:", keep(context.Background(), change) != nil)
	change.Object.Annotations = map[string]string{"example.com/adopt": "yes"}
	fmt.Println("it is refused:", keep(context.Background(), change) != nil)
	// Output:
	// it is refused: true
	// it is refused: false
}
