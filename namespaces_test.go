package einmal_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func widgetIn(namespace, name string) *Widget {
	widget := widgetOf(name)
	widget.Namespace = namespace
	return widget
}

// patterned declares an operator whose handlers say where they run.
func patterned(t *testing.T, said *notes, patterns ...string) func(*einmaltest.Process) *einmal.Operator {
	t.Helper()
	return func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.CRDs(testKinds(t)),
			einmal.Namespaces(patterns...), einmal.StateNamespace("default"))
		widgets := einmal.For[Widget](op)
		say := func(what string) einmal.HandlerFunc[Widget] {
			return func(_ context.Context, c *einmal.Change[Widget]) error {
				said.add("%s %s/%s", what, c.Object.Namespace, c.Object.Name)
				return nil
			}
		}
		widgets.OnCreate("make", say("make"))
		widgets.OnDelete("unmake", say("unmake"), einmal.Optional())
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
			if len(c.WokenBy) > 0 {
				said.add("woken %s/%s by %v, %d sizes", c.Object.Namespace, c.Object.Name, c.WokenBy[0], len(sizes.Get("all")))
			}
			return nil
		}, einmal.Watches(func(config *corev1.ConfigMap) []types.NamespacedName { return namedIn(config) }))
		return op
	}
}

// Scenario 84: watches follow the namespaces that match; in one that is gone nothing is left running, and one that comes back is
// served again. A restart repeats nothing.
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
			widgetIn("app-1", "a"), widgetIn("app-x", "a"), widgetIn("tools", "a"), widgetIn("other", "a"), widgetIn("default", "a"))
		w.Start(operator)
		expect("make app-1/a", "follow app-1/a", "make tools/a", "follow tools/a")
		w.Create(namespaceOf("app-2"), namespaceOf("app-x2"), namespaceOf("later"),
			widgetIn("app-2", "a"), widgetIn("app-x2", "a"), widgetIn("later", "a"))
		expect("make app-2/a", "follow app-2/a", "make later/a", "follow later/a")
		config := configOf("one", 1)
		config.Namespace, config.Data["for"] = "app-2", "a"
		w.Create(config)
		expect("woken app-2/a by ConfigMap app-2/one added, 4 sizes")
		w.Delete(widgetIn("app-2", "a"), config, namespaceOf("app-2"))
		expect("unmake app-2/a", "leave app-2/a")
		w.Create(namespaceOf("app-2"), widgetIn("app-2", "a"))
		expect("make app-2/a", "follow app-2/a")
		w.Restart()
		expect("leave app-1/a", "leave tools/a", "leave later/a", "leave app-2/a",
			"follow app-1/a", "follow tools/a", "follow later/a", "follow app-2/a")
	})
}
