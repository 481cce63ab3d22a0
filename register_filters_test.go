package einmal_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
)

// Design §4: mistakes with filters and fields come back at once, and name the remedy.
func TestMistakesWithFiltersComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds), einmal.StateNamespace("default"), einmal.Labels("a", einmal.Present()))
	widgets := einmal.For[Widget](op)
	handler := func(id string, options ...einmal.Option) { widgets.OnCreate(id, idle, options...) }
	handler("no-match", einmal.Labels("a", einmal.Match{}))
	handler("no-key", einmal.Labels("", einmal.Present()))
	handler("no-string", einmal.Annotations("a", einmal.Equals(1)))
	handler("no-json", einmal.Field("spec.size", einmal.Equals(func() {})))
	handler("no-function", einmal.Labels("a", einmal.Func(nil)))
	handler("nil-when", einmal.When[Widget](nil))
	handler("another-type", einmal.When(func(*corev1.Pod) bool { return true }))
	handler("contradiction", einmal.Labels("a", einmal.Equals("x")), einmal.All(einmal.Labels("a", einmal.Absent())))
	handler("empty", einmal.Any())
	handler("no-filter", einmal.Not(einmal.SaveFirst()))
	handler("no-condition", einmal.All(einmal.Field("spec.size")))
	handler("no-path", einmal.None(einmal.Field("spec.sise", einmal.Present())))
	handler("from-at-creation", einmal.Field("spec.size", einmal.From(einmal.Equals(1))))
	handler("from-label", einmal.Labels("a", einmal.To(einmal.Present())))
	handler("at-creation", einmal.AlsoAtCreation())
	update := func(id string, match ...einmal.Match) {
		widgets.OnUpdate(id, idle, einmal.Field("spec.size", match...))
	}
	update("both-ends", einmal.From(einmal.To(einmal.Present())))
	update("two-conditions", einmal.Present(), einmal.Equals(1))
	update("either-and-from", einmal.Present(), einmal.From(einmal.Equals(1)))
	update("no-change", einmal.From(einmal.Equals(1)), einmal.To(einmal.Equals(1.0)))
	widgets.OnUpdate("no-such-change", idle, einmal.Field("spec.size", einmal.To(einmal.Absent())), einmal.Field("spec.size", einmal.To(einmal.Present())))
	widgets.OnDelete("delete-field", idle, einmal.All(einmal.Field("spec.size", einmal.Present())))
	einmal.OnField(widgets, "two-fields", "spec.size", func(context.Context, *einmal.Change[Widget], int, int) error { return nil }, einmal.Field("spec.color"))
	einmal.OnField[int](widgets, "nil-field", "spec.size", nil)
	einmal.OnField[int](widgets, "bad-path", "spec..size", nil)
	widgets.OnDelete("fine", idle, einmal.Any(einmal.Labels("a", einmal.Equals("x")), einmal.Labels("a", einmal.Equals("y"))))
	einmal.OnField(einmal.For[corev1.Secret](op), "secret", "data.x", func(context.Context, *einmal.Change[corev1.Secret], string, string) error { return nil })
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option Labels does not belong to New", "no-match of Widget: option Labels: a: it has no condition: give it Present, Absent, Equals or Func",
		`no-key of Widget: option Labels: "" is no key of labels`, "no-string of Widget: option Annotations: a: the values of annotations are strings, and 1 is none",
		"no-json of Widget: option Field: spec.size: Equals: func() cannot be written as JSON", "Func: the function is nil", "option When: the function is nil",
		"option When: its function takes a *v1.Pod, but the handler's kind was declared as einmal_test.Widget",
		"contradiction of Widget: no object matches the two conditions on metadata.labels.a", "option Any: it joins no filters",
		"option Not: SaveFirst is no filter", "option All: Field: spec.size: inside of another filter it takes one match",
		`"no-path" of Widget: option Field: spec.sise: einmal_test.WidgetSpec has no field sise`,
		"from-at-creation of Widget: option Field: spec.size: From and To are about a change", "from-label of Widget: option Labels: a: From and To are for the Field of an update handler",
		"option AlsoAtCreation is for OnField and OnUpdate", "From and To are about one end", "two-conditions of Widget: option Field: spec.size: it has two conditions on the same end",
		"a condition on either end stands beside From or To", "From and To match the same value only", "no change matches the two conditions on spec.size",
		`"delete-field" of Widget: option Field: spec.size: a delete handler answers the deletion`, "OnField looks at spec.size alone, not at spec.color",
		`handler "nil-field" of Widget has no function`, "spec..size", "of Secrets no values are kept",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if strings.Contains(err.Error(), "fine") {
		t.Error("a right declaration is reported")
	}
	if t.Failed() {
		t.Logf("told:\n%v", err)
	}
}
