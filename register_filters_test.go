package einmal_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Run reports mistakes with filters and fields at once, and names the remedy.
func TestMistakesWithFiltersComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("default"))
	widgets := einmal.For[Widget](op)
	handler := func(id string, options ...einmal.CreateOption) {
		widgets.OnCreate(id, fixture.Nothing[Widget], options...)
	}
	handler("no-match", einmal.Labels("a", einmal.Match{}))
	handler("no-key", einmal.Labels("", einmal.Present()))
	handler("no-string", einmal.Annotations("a", einmal.Equals(1)))
	handler("no-json", einmal.FieldMatches("spec.size", einmal.Equals(func() {})))
	handler("no-function", einmal.Labels("a", einmal.Satisfies(nil)))
	handler("nil-when", einmal.When[Widget](nil))
	handler("another-type", einmal.When(func(*corev1.Pod) bool { return true }))
	handler("contradiction", einmal.Labels("a", einmal.Equals("x")), einmal.All(einmal.Labels("a", einmal.Absent())))
	handler("empty", einmal.Any())
	handler("nil-filter", einmal.Not(nil))
	handler("no-condition", einmal.All(einmal.FieldMatches("spec.size", einmal.Match{})))
	handler("no-path", einmal.None(einmal.FieldMatches("spec.sise", einmal.Present())))
	handler("nil-option", nil)
	update := func(id string, transitions ...einmal.Transition) {
		widgets.OnUpdate(id, fixture.Nothing[Widget], einmal.FieldChanges("spec.size", transitions...))
	}
	update("two-conditions", einmal.From(einmal.Present()), einmal.From(einmal.Equals(1)))
	update("either-and-from", einmal.FromOrTo(einmal.Present()), einmal.From(einmal.Equals(1)))
	update("no-change", einmal.From(einmal.Equals(1)), einmal.To(einmal.Equals(1.0)))
	widgets.OnUpdate("no-such-change", fixture.Nothing[Widget], einmal.FieldChanges("spec.size", einmal.To(einmal.Absent())), einmal.FieldChanges("spec.size", einmal.To(einmal.Present())))
	widgets.OnDelete("delete-field", fixture.Nothing[Widget], einmal.All(einmal.FieldMatches("spec.size", einmal.Present())))
	einmal.OnField(widgets, "two-fields", "spec.size", func(context.Context, *einmal.Change[Widget], int, int) error { return nil }, einmal.Fields("spec.color"))
	einmal.OnField(widgets, "other-type", "spec.size", func(context.Context, *einmal.Change[Widget], string, string) error { return nil })
	einmal.OnField[int](widgets, "nil-field", "spec.size", nil)
	einmal.OnField[int](widgets, "bad-path", "spec..size", nil)
	widgets.OnDelete("fine", fixture.Nothing[Widget], einmal.Any(einmal.Labels("a", einmal.Equals("x")), einmal.Labels("a", einmal.Equals("y"))))
	einmal.OnField(einmal.For[corev1.Secret](op), "secret", "data.x", func(context.Context, *einmal.Change[corev1.Secret], string, string) error { return nil })
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"no-match of Widget: option Labels: a: has no condition: use Present, Absent, Equals or Satisfies", "nil-option of Widget: option 1 is nil",
		`no-key of Widget: option Labels: invalid key "" of labels`, "no-string of Widget: option Annotations: a: annotations values must be strings, got 1",
		"no-json of Widget: option FieldMatches: spec.size: Equals: marshal func()", "Satisfies: the function is nil", "option When: the function is nil",
		"option When: the function takes a *v1.Pod, but the kind was declared with type fixture.Widget",
		"contradiction of Widget: no object can match both conditions on metadata.labels.a", "option Any: must have at least one filter",
		"option Not: filter 1 is nil", "option All: FieldMatches: spec.size: has no condition",
		`"no-path" of Widget: field spec.sise: fixture.WidgetSpec has no field sise; did you mean size?`,
		"two-conditions of Widget: option FieldChanges: spec.size: has two conditions on the same value",
		"has FromOrTo together with From or To", "From and To match the same single value", "no change can match both conditions on spec.size",
		`"delete-field" of Widget: field spec.size: filters of a delete handler cannot use fields`, "OnField compares spec.size only, not spec.color",
		"handler other-type of Widget: OnField: spec.size is a int, and the handler takes a string",
		`handler "nil-field" of Widget has no function`, "spec..size", "no values of Secrets are kept",
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
