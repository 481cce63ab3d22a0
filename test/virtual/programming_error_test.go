package virtual_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// mistaken is a handler with a programming error, until it is repaired.
type mistaken struct {
	handle   einmal.HandlerFunc[fixture.Widget]
	calls    int
	repaired bool
}

func (m *mistaken) call(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
	m.calls++
	if m.repaired {
		return nil
	}
	return m.handle(ctx, c)
}

// addsFinalizer changes the metadata that only the API server and Einmal change.
func addsFinalizer(_ context.Context, c *einmal.Change[fixture.Widget]) error {
	c.Object.Finalizers = append(c.Object.Finalizers, "example.com/mine")
	return nil
}

// opensAccount makes an effect, which only handlers with a record can.
func opensAccount(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
	_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(context.Context, string) (fixture.Account, error) { return fixture.Account{}, nil }))
	return err
}

// takesPhase writes a field that another handler owns.
func takesPhase(_ context.Context, c *einmal.Change[fixture.Widget]) error {
	c.Object.Status.Phase = "mine"
	return einmal.Permanent(errors.New("no further attempt helps"))
}

func editWidget(t *testing.T, w *virtualWorld, merge string) {
	t.Helper()
	fixture.Must(t, w.User.Patch(t.Context(), fixture.NewWidget("one"), client.RawPatch(types.MergePatchType, []byte(merge))))
}

// A handler with a programming error is called once in each process, and once for each edit of its object: limits and policies do not make the
// error final. A repaired release runs the handler for every object.
func TestAProgrammingErrorIsNotRetriedInTheSameProcess(t *testing.T) {
	for name, test := range map[string]struct {
		handle  einmal.HandlerFunc[fixture.Widget]
		declare func(*einmal.Kind[fixture.Widget], einmal.HandlerFunc[fixture.Widget])
		error   string
		// again is how often an edit of the object calls the handler. A daemon compares nothing.
		again int
	}{
		"finalizers": {addsFinalizer, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnCreate("wrong", call, einmal.MaxAttempts(1), einmal.RetryFor(time.Second))
		}, "handler changed metadata.finalizers on its copy: declare OnDelete", 1},
		"an owner reference, in a step": {func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return einmal.Step(ctx, c, "own", func(context.Context) error {
				c.Object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
				return nil
			})
		}, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnUpdate("wrong", call, einmal.AlsoAtCreation(), einmal.MaxAttempts(1))
		}, "handler changed metadata.ownerReferences on its copy: use Apply", 1},
		"a field of another handler": {takesPhase, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnCreate("wrong", call, einmal.OnError(einmal.PolicyFail))
		}, "handler wrong changed fields that other handlers own", 1},
		"an effect without a record": {opensAccount, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.Reconcile("wrong", call, einmal.OnError(einmal.PolicyIgnore))
		}, "handlers for the reason reconcile have no record: call it in a handler of OnCreate", 1},
		"an effect without a recovery": {func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return effectOf("account", einmal.Recovery[fixture.Account]{})(ctx, c)
		}, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnCreate("wrong", call)
		}, "recovery is missing", 1},
		"a step with a wrong id": {func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return einmal.Step(ctx, c, "My step", func(context.Context) error { return nil })
		}, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnCreate("wrong", call)
		}, `step "My step": id`, 1},
		"a child of an unknown Go type": {func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return c.Apply(ctx, &apiextensionsv1.CustomResourceDefinition{})
		}, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.Reconcile("wrong", call)
		}, "add its package with einmal.Scheme", 1},
		"in a resume handler": {addsFinalizer, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.OnResume("wrong", call)
		}, "handler changed metadata.finalizers", 1},
		"in a timer": {opensAccount, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.Timer("wrong", time.Minute, call)
		}, "have no record", 1},
		"in a daemon": {opensAccount, func(widgets *einmal.Kind[fixture.Widget], call einmal.HandlerFunc[fixture.Widget]) {
			widgets.Daemon("wrong", call, einmal.WithoutFinalizer())
		}, "have no record", 0},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, log := &mistaken{handle: test.handle}, fixture.NewLog(t)
			virtually(t, log, func(op *einmal.Operator) {
				widgets := einmal.For[fixture.Widget](op)
				test.declare(widgets, wrong.call)
				widgets.OnDelete("own", fixture.Nothing[fixture.Widget], einmal.OwnsStatus("phase"), einmal.WithoutFinalizer())
			}, func(t *testing.T, w *virtualWorld) { mistakes(t, w, wrong, test.again) })
			if n := log.Count("level=ERROR", fixture.ProgrammingError); n != 2+1 {
				t.Errorf("logged %d times at level ERROR, want once in each of three processes", n)
			}
			if named, all := log.Count(fixture.ProgrammingError, "handler=wrong", "error~"+test.error), log.Count(fixture.ProgrammingError); named != all {
				t.Errorf("%d of %d lines name the handler and the error", named, all)
			}
		})
	}
}

// mistakes goes through three processes in which a handler has a programming error, and one in which it is repaired.
func mistakes(t *testing.T, w *virtualWorld, wrong *mistaken, again int) {
	t.Helper()
	fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
	w.Pass(time.Second)
	if wrong.calls == 0 { // A resume handler is not called for a new object.
		w.restart(func() {})
		w.Pass(time.Second)
	}
	called := func(when string, want int) {
		t.Helper()
		if wrong.calls != want {
			t.Errorf("%s: called %d times, want %d", when, wrong.calls, want)
		}
	}
	told := events(t, w, "HandlerFailing")
	if len(told) != 1 || !strings.Contains(told[0], "wrong has a programming error") {
		t.Errorf("events after the first attempt: %q", told)
	}
	w.Pass(time.Hour)
	called("in the first process", 1)
	want := 1 + again
	editWidget(t, w, `{"spec":{"size":2}}`)
	w.Pass(time.Hour)
	called("after an edit", want)
	w.restart(func() {})
	w.Pass(time.Hour)
	called("in the second process", want+1)
	w.restart(func() {})
	w.Pass(time.Hour)
	called("in the third process", want+2)
	w.restart(func() { wrong.repaired = true })
	w.Pass(30 * time.Second)
	called("after the repair", want+3)
}

// A related object does not trigger a Reconcile that has a programming error. An edit of the object itself does.
func TestARelatedObjectDoesNotRetryAProgrammingError(t *testing.T) {
	wrong := &mistaken{handle: addsFinalizer}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("wrong", wrong.call, einmal.Watches(func(*corev1.ConfigMap) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: "default", Name: "one"}}
		}))
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewConfigMap("one", 1)))
		w.Pass(time.Minute)
		if wrong.calls != 1 {
			t.Errorf("called %d times, want once", wrong.calls)
		}
		wrong.repaired = true
		editWidget(t, w, `{"spec":{"size":2}}`)
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewConfigMap("one", 1)))
		w.Pass(time.Minute)
		if wrong.calls != 3 {
			t.Errorf("called %d times, want also for the edit and for the related object after it", wrong.calls)
		}
	})
}

// A delete handler with a programming error keeps its object until a user releases it with the annotation.
func TestADeletionWithAProgrammingErrorCanBeReleased(t *testing.T) {
	wrong := &mistaken{handle: addsFinalizer}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnDelete("wrong", wrong.call, einmal.MaxAttempts(1), einmal.ReleaseOnFailure())
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Hour)
		one := fixture.NewWidget("one")
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if wrong.calls != 1 {
			t.Errorf("called %d times, want once", wrong.calls)
		}
		editWidget(t, w, `{"metadata":{"annotations":{"`+fixture.Identity+`/release":"wrong"}}}`)
		w.Pass(time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the object is not gone: %v", err)
		}
	})
}

// renamed is an account whose number has got another type.
type renamed struct {
	Number string `json:"number"`
}

// recordedAs returns a handler that keeps an account in its record, as type R, and then waits.
func recordedAs[R any](account R, made *int, by func(context.Context, *einmal.Change[fixture.Widget], func() R) error) einmal.HandlerFunc[fixture.Widget] {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		err := by(ctx, c, func() R {
			*made++
			return account
		})
		if err != nil {
			return err
		}
		return einmal.RequeueAfter(10 * time.Minute)
	}
}

// inStep makes an account in a step.
func inStep[R any](ctx context.Context, c *einmal.Change[fixture.Widget], do func() R) error {
	_, err := einmal.StepResult(ctx, c, "account", func(context.Context) (R, error) { return do(), nil })
	return err
}

// inEffect makes an account in an effect.
func inEffect[R any](ctx context.Context, c *einmal.Change[fixture.Widget], do func() R) error {
	_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(context.Context, string) (R, error) { return do(), nil }))
	return err
}

// A release that cannot read what an earlier one has recorded has a programming error: it changes nothing, and a repaired release goes on with the
// recorded result.
func TestARecordedResultOfAnotherTypeIsAProgrammingError(t *testing.T) {
	made := 0
	account := fixture.Account{Number: 1}
	for what, handlers := range map[string][2]einmal.HandlerFunc[fixture.Widget]{
		"step":   {recordedAs(account, &made, inStep[fixture.Account]), recordedAs(renamed{Number: "one"}, &made, inStep[renamed])},
		"effect": {recordedAs(account, &made, inEffect[fixture.Account]), recordedAs(renamed{Number: "one"}, &made, inEffect[renamed])},
	} {
		t.Run(what, func(t *testing.T) {
			made = 0
			log, release := fixture.NewLog(t), 0
			virtually(t, log, func(op *einmal.Operator) {
				einmal.For[fixture.Widget](op).OnCreate("open", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
					return handlers[release](ctx, c)
				})
			}, func(t *testing.T, w *virtualWorld) {
				fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
				w.Pass(time.Hour)
				for range 2 {
					w.restart(func() { release = 1 })
					w.Pass(time.Hour)
				}
				if n := log.Count(fixture.ProgrammingError, "error~cannot read the recorded result as"); n != 2 {
					t.Errorf("logged %d programming errors, want one in each of two processes", n)
				}
				w.restart(func() { release = 0 })
				w.Pass(time.Hour)
			})
			if waits := log.Count("msg=handler waits"); made != 1 || waits < 10 {
				t.Errorf("made %d accounts, want 1; the repaired release waited %d times with the earlier ones", made, waits)
			}
		})
	}
}
