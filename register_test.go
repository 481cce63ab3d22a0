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
)

func nothing[T any](context.Context, *einmal.Change[T]) error { return nil }

// Design §4: all registration mistakes come back from Run as one joined error before any API call. The API server of
// this test does not exist.
func TestAllRegistrationMistakesComeBackAtOnce(t *testing.T) {
	op := einmal.New("no domain", einmal.Scheme(addTestKinds), einmal.Workers(0), einmal.Grace(-1), einmal.Deadline(0),
		einmal.RequestTimeout(999*time.Millisecond),
		einmal.Logger(nil), einmal.Field("spec"))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("twice", nothing[Widget])
	widgets.OnUpdate("twice", nothing[Widget])
	widgets.OnCreate("bad id!", nothing[Widget])
	widgets.OnCreate("no-function", nil)
	widgets.OnUpdate("no-such-field", nothing[Widget], einmal.Field("spec.sise"))
	widgets.OnUpdate("into-a-list", nothing[Widget], einmal.Field("spec.size.x"))
	widgets.OnUpdate("bad-path", nothing[Widget], einmal.Field("spec..size"))
	widgets.OnUpdate("unseen-metadata", nothing[Widget], einmal.Field("metadata.generation"))
	widgets.OnUpdate("fine", nothing[Widget], einmal.Field("metadata.labels[app.kubernetes.io/name]"), einmal.Field("spec.color"), einmal.Field("status.phase"))
	widgets.OnDelete("delete-field", nothing[Widget], einmal.Field("spec.size"))
	widgets.OnCreate("misplaced", nothing[Widget], einmal.Workers(3))
	einmal.For[Widget](op).OnCreate("again", nothing[Widget])
	einmal.For[corev1.Secret](op).OnCreate("secret", nothing[corev1.Secret])
	einmal.For[corev1.ConfigMap](op)
	einmal.For[unstructured.Unstructured](op).OnCreate("nameless", nothing[unstructured.Unstructured])

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`identity "no domain"`, "option Workers: 0", "option Grace", "option Deadline", "option Logger", "option RequestTimeout: must be at least 1s, got 999ms",
		"option Field does not belong to New", `handler "twice" of Widget is declared twice`, `handler "bad id!"`,
		`handler "no-function" of Widget has no function`, "spec.sise", "WidgetSpec has no field sise",
		"spec.size.x: int is a int, which has no field x", "spec..size", "metadata.generation is not looked at",
		`handler "delete-field"`, "option Workers does not belong to a handler", "Kind=Widget is declared twice",
		"kind Secret: no namespace is known for the key of its digests", "kind ConfigMap has no handlers", "einmal.GVK",
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
	if err == nil || !strings.Contains(err.Error(), "no kind is declared") || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}
