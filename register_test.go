package einmal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Run returns all registration mistakes as one joined error before any API call. The API server of this test does not exist.
func TestAllRegistrationMistakesComeBackAtOnce(t *testing.T) {
	op := einmal.New("no domain", einmal.Scheme(fixture.AddKinds), einmal.Workers(0), einmal.ShutdownTimeout(-1), einmal.HandlerDefaults(einmal.AttemptTimeout(0)),
		einmal.RequestTimeout(999*time.Millisecond),
		einmal.Logger(nil), nil)
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("twice", fixture.Nothing[Widget])
	widgets.OnUpdate("twice", fixture.Nothing[Widget])
	widgets.OnCreate("bad id!", fixture.Nothing[Widget])
	widgets.OnCreate("no-function", nil)
	widgets.OnUpdate("no-such-field", fixture.Nothing[Widget], einmal.Fields("spec.sise"))
	widgets.OnUpdate("into-a-list", fixture.Nothing[Widget], einmal.Fields("spec.size.x"))
	widgets.OnUpdate("bad-path", fixture.Nothing[Widget], einmal.Fields("spec..size"))
	widgets.OnUpdate("unseen-metadata", fixture.Nothing[Widget], einmal.Fields("metadata.generation"))
	widgets.OnUpdate("fine", fixture.Nothing[Widget], einmal.Fields("metadata.labels[app.kubernetes.io/name]"), einmal.Fields("spec.color"), einmal.Fields("status.phase"))
	widgets.OnDelete("delete-field", fixture.Nothing[Widget], einmal.FieldMatches("spec.size", einmal.Present()))
	einmal.For[Widget](op).OnCreate("again", fixture.Nothing[Widget])
	einmal.For[corev1.Secret](op).OnCreate("secret", fixture.Nothing[corev1.Secret])
	einmal.For[corev1.ConfigMap](op)
	einmal.For[unstructured.Unstructured](op).OnCreate("nameless", fixture.Nothing[unstructured.Unstructured])

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`identity "no domain": must be a domain name`, "option Workers: must be at least 1, got 0", "option ShutdownTimeout", "option HandlerDefaults: option AttemptTimeout", "option Logger", "option RequestTimeout: must be at least 1s, got 999ms",
		"option 7 is nil", `handler "twice" of Widget is declared twice`, `handler "bad id!"`,
		`handler "no-function" of Widget has no function`, "field spec.sise: fixture.WidgetSpec has no field sise; did you mean size?",
		"spec.size.x: int is a int, which has no field x", "spec..size", "field metadata.generation: metadata other than labels and annotations is not compared",
		`handler "delete-field"`, "Kind=Widget is declared twice",
		"kind Secret: no namespace for the digest key", "kind ConfigMap has no handlers", "einmal.GVK",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if strings.Contains(err.Error(), `"fine"`) {
		t.Error("a right declaration is reported")
	}
	if t.Failed() {
		t.Logf("told:\n%v", err)
	}
}

func TestAnOperatorWithoutKindsIsAMistake(t *testing.T) {
	failing := func(*runtime.Scheme) error { return context.Canceled }
	err := einmal.New("op.example.com", einmal.Scheme(failing)).Run(t.Context(), &rest.Config{}, einmal.RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "no kinds: declare at least one") || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}

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

// Errors about retry options name the kind, the handler and the remedy.
func TestMistakesInRetriesComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds), einmal.HandlerDefaults(einmal.MaxAttempts(-1), einmal.OwnsStatus("phase")))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("none", fixture.Nothing[Widget], einmal.MaxAttempts(0))
	widgets.OnCreate("no-time", fixture.Nothing[Widget], einmal.RetryFor(0))
	widgets.OnCreate("shrinks", fixture.Nothing[Widget], einmal.Backoff(time.Minute, time.Second))
	widgets.OnCreate("no-policy", fixture.Nothing[Widget], einmal.OnError(7))
	widgets.OnUpdate("no-name", fixture.Nothing[Widget], einmal.FormerlyKnownAs())
	widgets.OnUpdate("bad-name", fixture.Nothing[Widget], einmal.FormerlyKnownAs("bad name"))
	widgets.OnUpdate("itself", fixture.Nothing[Widget], einmal.FormerlyKnownAs("itself"))
	widgets.OnUpdate("still-there", fixture.Nothing[Widget], einmal.FormerlyKnownAs("none"))
	widgets.OnUpdate("one", fixture.Nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnUpdate("two", fixture.Nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnDelete("fine", fixture.Nothing[Widget], einmal.ReleaseOnFailure(), einmal.MaxAttempts(3), einmal.RetryFor(time.Hour),
		einmal.Backoff(time.Second, time.Second), einmal.OnError(einmal.PolicyFail), einmal.FormerlyKnownAs("good", "better"))
	widgets.OnResume("also-fine", fixture.Nothing[Widget], einmal.MaxAttempts(1), einmal.OnError(einmal.PolicyIgnore))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option HandlerDefaults: option MaxAttempts: must be at least 1, got -1", "handler none of Widget: option MaxAttempts: must be at least 1, got 0",
		"handler no-time of Widget: option RetryFor: must be positive, got 0s", "handler shrinks of Widget: option Backoff: initial must be positive and at most longest, got 1m0s and 1s",
		"handler no-policy of Widget: option OnError: unknown policy 7",
		"handler no-name of Widget: option FormerlyKnownAs: must have at least one id", `"bad name" is not a valid id`,
		`"itself" is already the id of handler "itself"`, `"none" is already the id of handler "none"`,
		`handler "two" of Widget: option FormerlyKnownAs: "shared" is already the id of handler "one"`,
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

// Run reports two handlers that own the same status field, and owned fields that do not exist.
func TestMistakesInOwnedStatusComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	tenants := fixture.Tenants(op)
	tenants.OnCreate("one", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phase", "conditions[Ready]", "endpoints"))
	tenants.OnUpdate("two", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phase"))
	tenants.OnUpdate("all", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("conditions"))
	tenants.OnUpdate("item", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("endpoints[sql/5432]"))
	tenants.OnUpdate("fine", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("dbReady"), einmal.OwnsStatus("plan"))
	tenants.OnUpdate("none", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus())
	tenants.OnUpdate("no-path", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("a..b"))
	tenants.OnUpdate("too-long", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("status.redisReady"))
	tenants.OnUpdate("not-there", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phrase"))
	free := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
	free.OnCreate("fine", fixture.Nothing[unstructured.Unstructured], einmal.OwnsStatus("whatever.comes", "status"))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`handler "two" of Tenant: option OwnsStatus: handler "one" already owns status.phase, which conflicts with status.phase: let one handler`,
		`handler "all" of Tenant: option OwnsStatus: handler "one" already owns status.conditions.Ready, which conflicts with status.conditions:`,
		`handler "item" of Tenant: option OwnsStatus: handler "one" already owns status.endpoints`,
		"handler none of Tenant: option OwnsStatus: must have at least one field of the status",
		"handler no-path of Tenant: option OwnsStatus: field path",
		"handler too-long of Tenant: option OwnsStatus: paths must start below the status, got status.redisReady: write it as redisReady",
		`handler "not-there" of Tenant: option OwnsStatus: field status.phrase`,
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
