package einmal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func widgetIn(namespace string) *Widget {
	widget := widgetOf("a")
	widget.Namespace = namespace
	return widget
}

// patterned declares an operator whose handlers say where they run.
func patterned(t *testing.T, said *notes, patterns ...string) func(*einmaltest.Process) *einmal.Operator {
	t.Helper()
	return func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.CRDs(testKinds()),
			einmal.Namespaces(patterns...), einmal.StateNamespace("default"))
		widgets := einmal.For[Widget](op)
		say := func(what string) einmal.HandlerFunc[Widget] {
			return func(_ context.Context, c *einmal.Change[Widget]) error {
				said.add("%s %s/%s", what, c.Object.Namespace, c.Object.Name)
				return nil
			}
		}
		widgets.OnCreate("make", say("make"))
		widgets.OnDelete("unmake", say("unmake"), einmal.WithoutFinalizer())
		widgets.Daemon("follow", func(ctx context.Context, c *einmal.Change[Widget]) error {
			said.add("follow %s/%s", c.Object.Namespace, c.Object.Name)
			<-ctx.Done()
			said.add("leave %s/%s", c.Object.Namespace, c.Object.Name)
			return nil
		})
		sizes := einmal.Index(op, "sizes", func(widget *Widget) (map[string]int, error) {
			return map[string]int{"all": widget.Spec.Size}, nil
		})
		widgets.Reconcile("woken", func(_ context.Context, c *einmal.Change[Widget]) error {
			if len(c.TriggeredBy) > 0 {
				said.add("woken %s/%s by %v, %d sizes", c.Object.Namespace, c.Object.Name, c.TriggeredBy[0], len(sizes.Get("all")))
			}
			return nil
		}, einmal.Watches(namedIn))
		return op
	}
}

// Scenario 84: watches follow the namespaces that match. Nothing keeps running for a deleted namespace, and one that comes back is served again.
// A restart repeats nothing.
func TestNamespacesAppearAndVanish(t *testing.T) {
	said := &notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		expect := func(want ...string) {
			t.Helper()
			w.Advance(time.Minute)
			lines := said.said()
			slices.Sort(lines)
			slices.Sort(want)
			if !slices.Equal(lines, want) {
				w.Errorf("said %q, want %q", lines, want)
			}
		}
		operator := patterned(t, said, "app-*,!app-x*", "tools", "later")
		w.Install(operator)
		w.Create(namespaceOf("app-1"), namespaceOf("app-x"), namespaceOf("tools"), namespaceOf("other"),
			widgetIn("app-1"), widgetIn("app-x"), widgetIn("tools"), widgetIn("other"), widgetIn("default"))
		w.Start(operator)
		expect("make app-1/a", "follow app-1/a", "make tools/a", "follow tools/a")
		w.Create(namespaceOf("app-2"), namespaceOf("app-x2"), namespaceOf("later"),
			widgetIn("app-2"), widgetIn("app-x2"), widgetIn("later"))
		expect("make app-2/a", "follow app-2/a", "make later/a", "follow later/a")
		config := configOf("one", 1)
		config.Namespace, config.Data["for"] = "app-2", "a"
		w.Create(config)
		expect("woken app-2/a by ConfigMap app-2/one added, 4 sizes")
		w.Delete(widgetIn("app-2"), config, namespaceOf("app-2"))
		expect("unmake app-2/a", "leave app-2/a")
		w.Create(namespaceOf("app-2"), widgetIn("app-2"))
		expect("make app-2/a", "follow app-2/a")
		w.Restart()
		expect("leave app-1/a", "leave tools/a", "leave later/a", "leave app-2/a",
			"follow app-1/a", "follow tools/a", "follow later/a", "follow app-2/a")
	})
}

// Scenario 84: a manager whose cache cannot follow namespaces is refused, and an invalid pattern is a registration error.
func TestNamespacesThatCannotBeFollowed(t *testing.T) {
	handled := func(options ...einmal.OperatorOption) *einmal.Operator {
		op := einmal.New(testIdentity, append(options, einmal.Scheme(addTestKinds))...)
		einmal.For[Widget](op).OnCreate("make", func(context.Context, *einmal.Change[Widget]) error { return nil })
		return op
	}
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	for _, test := range []struct {
		patterns []string
		options  func(*einmal.Operator) ctrl.Options
		want     string
	}{
		{patterns: []string{"app-*"}, want: "create the manager with NewCache: op.NewCache"},
		{patterns: []string{"app-*"}, options: func(op *einmal.Operator) ctrl.Options { return ctrl.Options{NewCache: op.NewCache} }},
		{patterns: []string{"app"}},
		{patterns: []string{"app", "a,b"}, want: `option Namespaces: namespaces "a,b": "b" has no effect: the first glob of the pattern, "a", does not match it`},
		{patterns: []string{"App"}, want: "invalid name or glob"},
	} {
		op := handled(einmal.Namespaces(test.patterns...))
		options := ctrl.Options{}
		if test.options != nil {
			options = test.options(op)
		}
		options.Scheme, options.Logger, options.Metrics.BindAddress = op.Scheme(), logr.Discard(), "0"
		mgr, err := ctrl.NewManager(config, options)
		if err != nil {
			t.Fatal(err)
		}
		err = op.SetupWithManager(mgr)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("namespaces %q: %v, want %q", test.patterns, err, test.want)
		}
	}
}

// Scenario 84: a manager of your own can cache more namespaces than the operator serves. Objects in the others are not handled.
func TestTheManagersCacheCanHaveMoreNamespaces(t *testing.T) {
	var calls []string
	declare := func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
			calls = append(calls, fmt.Sprintf("%s %s/%s", c.Reason, c.Object.Namespace, c.Object.Name))
			return nil
		})
		widgets.OnEvent("watch", func(_ context.Context, c *einmal.Change[Widget]) error {
			calls = append(calls, fmt.Sprintf("%s %s/%s", c.Reason, c.Object.Namespace, c.Object.Name))
			return nil
		})
	}
	log := testLog(t)
	virtually(t, log, declare, func(t *testing.T, w *virtualWorld) {
		w.Stop() // The operator runs in another manager from here on.
		op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Namespaces("app"), einmal.StateNamespace("default"),
			einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
		declare(op)
		must(t, w.User.Create(t.Context(), namespaceOf("app")))
		must(t, w.User.Create(t.Context(), widgetIn("app")))
		must(t, w.User.Create(t.Context(), widgetIn("default")))
		mgr, err := ctrl.NewManager(w.Server.Config(), ctrl.Options{Scheme: op.Scheme(), Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}})
		must(t, err)
		must(t, op.SetupWithManager(mgr))
		stop := startManager(t, mgr)
		defer stop()
		w.Pass(time.Minute)
		later := widgetIn("default")
		later.Name = "later"
		must(t, w.User.Create(t.Context(), later))
		must(t, w.User.Delete(t.Context(), widgetIn("default")))
		w.Pass(time.Minute)
	})
	if diff := cmp.Diff([]string{"create app/a", "listed app/a", "modified app/a"}, slices.Sorted(slices.Values(calls))); diff != "" {
		t.Error(diff)
	}
}

// Scenario 84, explored: with any fault while namespaces come and go, each object in a matching namespace is handled once, and no other object
// is handled.
func TestWhateverGoesWrongNamespacesAreFollowed(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		operator := func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.CRDs(testKinds()), einmal.Applies(&corev1.ConfigMap{}),
				einmal.Namespaces("app-*,!app-x*", "default"), einmal.StateNamespace("default"))
			widgets := einmal.For[Widget](op)
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[Widget]) error {
				c.Object.Status.Phase = "made"
				made := configOf(c.Object.Name, c.Object.Spec.Size)
				made.Namespace = c.Object.Namespace
				return c.Apply(ctx, made)
			})
			widgets.OnDelete("unmake", func(context.Context, *einmal.Change[Widget]) error { return nil })
			widgets.Daemon("follow", func(ctx context.Context, _ *einmal.Change[Widget]) error {
				<-ctx.Done()
				return nil
			})
			return op
		}
		w.Install(operator)
		w.Create(namespaceOf("app-1"), namespaceOf("app-x"), widgetIn("app-1"), widgetIn("app-x"))
		w.Start(operator)
		w.Advance(10 * time.Minute)
		w.Create(namespaceOf("app-2"), widgetIn("app-2"), widgetIn("default"))
		w.Advance(10 * time.Minute)
		w.Delete(widgetIn("app-1"), namespaceOf("app-1"))
		w.Advance(20 * time.Minute)
		w.Outcome("the namespace is there", w.Get(namespaceOf("app-1")))
		w.Create(namespaceOf("app-3"), widgetIn("app-3"))
		w.Advance(10 * time.Minute)
	}, einmaltest.Without(einmaltest.Wipes)) // What is wiped below a watermark is Lost, which a condition tells.
}
