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
