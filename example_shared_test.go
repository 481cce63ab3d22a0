package einmal_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Everything that calls one slow system is retried at the same pace: handlers of several verbs, and an index. Which type has the function that
// returns the option? The one that all of these places take.
func ExampleRetryOption() {
	calmly := func() einmal.RetryOption { return einmal.Backoff(10*time.Second, time.Hour) }
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("register", fixture.Nothing, calmly())
	widgets.OnDelete("unregister", fixture.Nothing, calmly())
	widgets.Timer("check", time.Hour, fixture.Nothing, calmly())
	einmal.Index(op, "by-color", func(widget *Widget) (map[string]string, error) {
		return map[string]string{widget.Spec.Color: widget.Name}, nil
	}, calmly())
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// A release renames all handlers at once: their ids no longer begin with legacy. How do the records stay valid? Each handler lists its former id.
func ExampleRecordedOption() {
	renamed := func(id string) einmal.RecordedOption { return einmal.FormerlyKnownAs("legacy-" + id) }
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("register", fixture.Nothing, renamed("register"))
	widgets.OnUpdate("resize", fixture.Nothing, renamed("resize"), einmal.Fields("spec.size"))
	widgets.OnDelete("unregister", fixture.Nothing, renamed("unregister"))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Three handlers of different verbs depend on the same fields. If these are listed in one place, no handler misses a field that is added later.
func ExampleFieldsOption() {
	appearance := func() einmal.FieldsOption { return einmal.Fields("spec.color", "spec.tags") }
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnUpdate("repaint", fixture.Nothing, appearance())
	widgets.Reconcile("keep-picture", fixture.Nothing, appearance())
	widgets.Timer("photograph", time.Hour, fixture.Nothing, appearance(), einmal.IdleFor(10*time.Minute))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// A package has functions that handlers call, and these send requests. How does it say which permissions they need? It exports an option, which an
// author gives to the handler that calls them. The command rbac then prints the permissions.
func ExamplePermissionOption() {
	quotaPermissions := func() einmal.PermissionOption { // In the package.
		return einmal.Permissions(&corev1.ResourceQuota{}, "get", "create", "update")
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("set-quota", fixture.Nothing, quotaPermissions())
	widgets.OnEvent("count", fixture.Nothing)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Untyped objects have the same Go type, whatever their kind is. If several places are about one kind, its name is written in one place.
func ExampleKindOption() {
	gadget := func() einmal.KindOption { return einmal.GVK("example.com", "v1", "Gadget") }
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[unstructured.Unstructured](op, gadget()).OnCreate("make", fixture.Nothing)
	einmal.For[Widget](op).Reconcile("mount", fixture.Nothing, einmal.Watches(func(of *unstructured.Unstructured) []types.NamespacedName {
		widget, _, _ := unstructured.NestedString(of.Object, "spec", "widget")
		return []types.NamespacedName{{Name: widget}}
	}, gadget()))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Two indexes are about the same objects: of one kind, with one label. An object whose entries cannot be computed keeps the previous ones.
func ExampleIndexOption() {
	mounted := []einmal.IndexOption{
		einmal.GVK("example.com", "v1", "Gadget"), einmal.Labels("example.com/mounted", einmal.Present()), einmal.OnError(einmal.PolicyIgnore),
	}
	by := func(field string) func(*unstructured.Unstructured) (map[string]types.NamespacedName, error) {
		return func(of *unstructured.Unstructured) (map[string]types.NamespacedName, error) {
			key, _, err := unstructured.NestedString(of.Object, "spec", field)
			return map[string]types.NamespacedName{key: client.ObjectKeyFromObject(of)}, err
		}
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("make", fixture.Nothing)
	einmal.Index(op, "gadgets-by-widget", by("widget"), mounted...)
	einmal.Index(op, "gadgets-by-node", by("node"), mounted...)
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Each team has its own handlers. A function returns the filter of a team, and every verb of the team takes it.
func ExampleFilter() {
	of := func(team string) einmal.Filter {
		return einmal.All(
			einmal.Labels("example.com/team", einmal.Equals(team)),
			einmal.Not(einmal.Annotations("example.com/paused", einmal.Equals("yes"))),
		)
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	for _, team := range []string{"blue", "red"} {
		widgets.OnCreate("make-for-"+team, fixture.Nothing, of(team))
		widgets.OnDelete("unmake-for-"+team, fixture.Nothing, of(team))
	}
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Is there a condition for one of several values? A function makes it from Satisfies. Labels, Annotations, FieldMatches and FieldChanges take it.
func ExampleMatch() {
	oneOf := func(allowed ...string) einmal.Match {
		return einmal.Satisfies(func(value any, found bool) bool {
			text, isText := value.(string)
			return found && isText && slices.Contains(allowed, text)
		})
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("make", fixture.Nothing, einmal.Labels("example.com/tier", oneOf("gold", "silver")))
	widgets.OnUpdate("warn", fixture.Nothing, einmal.FieldChanges("spec.color", einmal.To(oneOf("red", "orange"))))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// Handlers for the same change of different fields: a function returns the conditions on the value before and after it.
func ExampleTransition() {
	leaving := func(value string) []einmal.Transition {
		return []einmal.Transition{einmal.From(einmal.Equals(value)), einmal.To(einmal.Present())}
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnUpdate("end-trial", fixture.Nothing, einmal.FieldChanges("spec.color", leaving("trial")...))
	widgets.OnUpdate("end-pause", fixture.Nothing, einmal.FieldChanges("metadata.labels[example.com/state]", leaving("paused")...))
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}
