package virtual_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A handler that fails again and again is visible before it fails for good: by an event after the third attempt, which names the remedy for a
// missing permission, as the log does.
func TestAHandlerThatKeepsFailingIsVisible(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return c.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
		})
		widgets.OnCreate("full", func(context.Context, *einmal.Change[fixture.Widget]) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "one", errors.New("exceeded quota: pods=3"))
		})
	}, func(t *testing.T, w *virtualWorld) {
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		var found corev1.EventList
		if err := w.User.List(t.Context(), &found); err != nil {
			t.Fatal(err)
		}
		missing, quota := notesOf(found.Items, "handler make "), notesOf(found.Items, "handler full ")
		const want = "Warning HandlerFailing: handler make has failed 3 times and will be retried: "
		if !strings.Contains(missing, want) || !strings.Contains(missing, "einmal.Permissions") || quota == "" || strings.Contains(quota, "einmal.Permissions") {
			t.Errorf("events:\n%s%s", missing, quota)
		}
	})
	if log.Count("remedy~name the permission with einmal.Permissions") == 0 {
		t.Error("the log does not name the remedy")
	}
	if log.Count("handler=full", "msg~handler failed") == 0 || log.Count("handler=full", "remedy~einmal.Permissions") != 0 {
		t.Error("the log calls a quota a missing permission")
	}
}

// notesOf returns the events whose message begins with a text, one on each line.
func notesOf(events []corev1.Event, begins string) string {
	var notes strings.Builder
	for _, event := range events {
		if strings.HasPrefix(event.Message, begins) {
			notes.WriteString(event.Type + " " + event.Reason + ": " + event.Message + "\n")
		}
	}
	return notes.String()
}

// An attempt that goes on after its timeout is logged.
func TestAHandlerThatIgnoresItsContextIsLogged(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
			<-time.After(time.Minute) // It ignores its context.
			return nil
		}, einmal.AttemptTimeout(10*time.Second))
		einmal.For[corev1.ConfigMap](op).OnCreate("obeys", func(ctx context.Context, _ *einmal.Change[corev1.ConfigMap]) error {
			<-ctx.Done()
			return einmal.Permanent(ctx.Err())
		}, einmal.AttemptTimeout(10*time.Second))
	}, func(t *testing.T, w *virtualWorld) {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
		if err := errors.Join(w.User.Create(t.Context(), fixture.NewWidget("one")), w.User.Create(t.Context(), config)); err != nil {
			t.Fatal(err)
		}
		w.Pass(2 * time.Minute)
	})
	const said = "msg=handler still runs after its timeout"
	fixture.ExpectLine(t, log, said)
	fixture.ExpectLine(t, log, said, "timeout=10s", "ran=15s")
}

// The line about a panic begins with its cause, and ends with the stack.
func TestTheCauseOfAPanicComesBeforeItsStack(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error { panic("out of paper") }, einmal.MaxAttempts(1))
	}, func(t *testing.T, w *virtualWorld) {
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
	})
	cause, stack := strings.Index(log.String(), "out of paper"), strings.Index(log.String(), "stack=")
	if cause < 0 || stack < 0 || cause > stack {
		t.Errorf("the cause is at %d, the stack at %d", cause, stack)
	}
}
