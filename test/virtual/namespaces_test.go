package virtual_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// patterned declares an operator whose handlers say where they run.
func patterned(t *testing.T, said *fixture.Notes, patterns ...string) func(*einmaltest.Process) *einmal.Operator {
	t.Helper()
	return func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()),
			einmal.Namespaces(patterns...), einmal.StateNamespace("default"))
		widgets := einmal.For[fixture.Widget](op)
		say := func(what string) einmal.HandlerFunc[fixture.Widget] {
			return func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("%s %s/%s", what, c.Object.Namespace, c.Object.Name)
				return nil
			}
		}
		widgets.OnCreate("make", say("make"))
		widgets.OnDelete("unmake", say("unmake"), einmal.WithoutFinalizer())
		widgets.Daemon("follow", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			said.Add("follow %s/%s", c.Object.Namespace, c.Object.Name)
			<-ctx.Done()
			said.Add("leave %s/%s", c.Object.Namespace, c.Object.Name)
			return nil
		})
		sizes := einmal.Index(op, "sizes", func(widget *fixture.Widget) (map[string]int, error) {
			return map[string]int{"all": widget.Spec.Size}, nil
		})
		widgets.Reconcile("woken", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			if len(c.TriggeredBy) > 0 {
				said.Add("woken %s/%s by %v, %d sizes", c.Object.Namespace, c.Object.Name, c.TriggeredBy[0], len(sizes.Get("all")))
			}
			return nil
		}, einmal.Watches(namedIn))
		return op
	}
}

// Scenario 84: watches follow the namespaces that match. Nothing keeps running for a deleted namespace, and one that comes back is served again.
// A restart repeats nothing.
func TestNamespacesAppearAndVanish(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		expect := func(want ...string) {
			t.Helper()
			w.Advance(time.Minute)
			lines := said.Said()
			slices.Sort(lines)
			slices.Sort(want)
			if !slices.Equal(lines, want) {
				w.Errorf("said %q, want %q", lines, want)
			}
		}
		operator := patterned(t, said, "app-*,!app-x*", "tools", "later")
		w.Install(operator)
		w.Create(fixture.NewNamespace("app-1"), fixture.NewNamespace("app-x"), fixture.NewNamespace("tools"), fixture.NewNamespace("other"),
			fixture.NewWidgetIn("app-1"), fixture.NewWidgetIn("app-x"), fixture.NewWidgetIn("tools"), fixture.NewWidgetIn("other"), fixture.NewWidgetIn("default"))
		w.Start(operator)
		expect("make app-1/a", "follow app-1/a", "make tools/a", "follow tools/a")
		w.Create(fixture.NewNamespace("app-2"), fixture.NewNamespace("app-x2"), fixture.NewNamespace("later"),
			fixture.NewWidgetIn("app-2"), fixture.NewWidgetIn("app-x2"), fixture.NewWidgetIn("later"))
		expect("make app-2/a", "follow app-2/a", "make later/a", "follow later/a")
		config := fixture.NewConfigMap("one", 1)
		config.Namespace, config.Data["for"] = "app-2", "a"
		w.Create(config)
		expect("woken app-2/a by ConfigMap app-2/one added, 4 sizes")
		w.Delete(fixture.NewWidgetIn("app-2"), config, fixture.NewNamespace("app-2"))
		expect("unmake app-2/a", "leave app-2/a")
		w.Create(fixture.NewNamespace("app-2"), fixture.NewWidgetIn("app-2"))
		expect("make app-2/a", "follow app-2/a")
		w.Restart()
		expect("leave app-1/a", "leave tools/a", "leave later/a", "leave app-2/a",
			"follow app-1/a", "follow tools/a", "follow later/a", "follow app-2/a")
	})
}

// Scenario 84: a manager whose cache cannot follow namespaces is refused, and an invalid pattern is a registration error.
func TestNamespacesThatCannotBeFollowed(t *testing.T) {
	handled := func(options ...einmal.OperatorOption) *einmal.Operator {
		op := einmal.New(fixture.Identity, append(options, einmal.Scheme(fixture.AddKinds))...)
		einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
		return op
	}
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	all := map[string]cache.Config{metav1.NamespaceAll: {}}
	for _, test := range []struct {
		patterns []string
		cached   map[string]cache.Config
		want     string
	}{
		{patterns: []string{"app-*"}, cached: all, want: "the manager's option Cache.DefaultNamespaces: leave it out"},
		{patterns: []string{"app-*"}},
		{patterns: []string{"app"}, cached: all},
		{patterns: []string{"app"}},
		{patterns: []string{"app", "a,b"}, want: `option Namespaces: namespaces "a,b": "b" has no effect: the first glob of the pattern, "a", does not match it`},
		{patterns: []string{"App"}, want: "invalid name or glob"},
	} {
		op := handled(einmal.Namespaces(test.patterns...))
		mgr, err := op.NewManager(config, manager.Options{
			Logger: logr.Discard(), Cache: cache.Options{DefaultNamespaces: test.cached}, Metrics: server.Options{BindAddress: "0"},
		})
		if err == nil {
			err = op.SetupWithManager(mgr)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("namespaces %q: %v, want %q", test.patterns, err, test.want)
		}
	}
}

// Scenario 84: a manager of your own can cache more namespaces than the operator serves. Objects in the others are not handled.
func TestTheManagersCacheCanHaveMoreNamespaces(t *testing.T) {
	var calls []string
	declare := func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			calls = append(calls, fmt.Sprintf("%s %s/%s", c.Reason, c.Object.Namespace, c.Object.Name))
			return nil
		})
		widgets.OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			calls = append(calls, fmt.Sprintf("%s %s/%s", c.Reason, c.Object.Namespace, c.Object.Name))
			return nil
		})
	}
	log := fixture.NewLog(t)
	virtually(t, log, declare, func(t *testing.T, w *virtualWorld) {
		w.Stop() // The operator runs in another manager from here on.
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Namespaces("app"), einmal.StateNamespace("default"),
			einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
		declare(op)
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewNamespace("app")))
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidgetIn("app")))
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidgetIn("default")))
		mgr, err := op.NewManager(w.Server.Config(), manager.Options{
			Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceAll: {}}},
		})
		fixture.Must(t, err)
		fixture.Must(t, op.SetupWithManager(mgr))
		stop := fixture.StartManager(t, mgr)
		defer stop()
		w.Pass(time.Minute)
		later := fixture.NewWidgetIn("default")
		later.Name = "later"
		fixture.Must(t, w.User.Create(t.Context(), later))
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewWidgetIn("default")))
		w.Pass(time.Minute)
	})
	if diff := cmp.Diff([]string{"create app/a", "listed app/a", "modified app/a"}, slices.Sorted(slices.Values(calls))); diff != "" {
		t.Error(diff)
	}
}
