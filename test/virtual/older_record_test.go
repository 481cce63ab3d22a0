package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// settled is a ConfigMap whose record is in an annotation, which travels with copies of the object.
func settled(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"v": value}}
}

// sendInvoice notes that it sends an invoice, which must not happen twice.
func sendInvoice(ctx context.Context, c *einmal.Change[corev1.ConfigMap], calls *[]string) error {
	_, err := einmal.Effect(ctx, c, "invoice", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
		*calls = append(*calls, "invoice")
		return fixture.Account{}, nil
	}))
	return err
}

// withOlderRecords runs an operator of ConfigMaps that notes its calls. The creation succeeds in the third attempt.
func withOlderRecords(t *testing.T, use func(*einmaltest.World, func() []string)) {
	t.Helper()
	var calls []string
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			maps := einmal.For[corev1.ConfigMap](op)
			maps.OnCreate("make", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				calls = append(calls, fmt.Sprint("make ", c.Attempt))
				if err := sendInvoice(ctx, c, &calls); err != nil || c.Attempt < 3 {
					return einmal.RetryAfter(time.Minute, errors.Join(err, errors.New("not yet")))
				}
				return nil
			})
			maps.OnUpdate("tell", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				if old, ok := c.Old(); ok {
					calls = append(calls, "tell "+old.Data["v"]+" to "+c.Object.Data["v"])
				}
				return nil
			})
			return op
		})
		use(w, func() []string {
			w.Advance(5 * time.Minute)
			return slices.Clone(calls)
		})
	})
}

// exported returns the object as it is now, as a manifest that can be applied later.
func exported(w *einmaltest.World) *corev1.ConfigMap {
	w.Helper()
	export := settled("")
	if !w.Get(export) {
		w.Fatal("the object is gone")
	}
	export.ResourceVersion, export.ManagedFields = "", nil
	return export
}

// replace replaces the object by an export.
func replace(w *einmaltest.World, export *corev1.ConfigMap) {
	w.Helper()
	if err := w.Client().Update(w.Context(), export.DeepCopy()); err != nil {
		w.Fatal(err)
	}
}

func expectCalls(w *einmaltest.World, got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("calls %q, want %q", got, want)
	}
}

// The annotations go back with the content, as with kubectl rollout undo. The change is handled, from what the handler has really seen, and the
// newest record is written again.
func TestARecordThatGoesBackWithTheContentHidesNoChange(t *testing.T) {
	withOlderRecords(t, func(w *einmaltest.World, calls func() []string) {
		w.Advance(time.Second)
		w.Create(settled("1"))
		made := []string{"make 1", "invoice", "make 2", "make 3"}
		expectCalls(w, calls(), made...)
		first := exported(w)
		w.Patch(settled(""), `{"data":{"v":"2"}}`)
		made = append(made, "tell 1 to 2")
		expectCalls(w, calls(), made...)
		replace(w, first)
		made = append(made, "tell 2 to 1")
		expectCalls(w, calls(), made...)
		w.Restart()
		expectCalls(w, calls(), made...)
	})
}

// A manifest that was exported while the creation was open is applied later, again and again. No handler runs and no effect is made again.
func TestARecordOfAnOpenCreationThatComesBackRunsNothing(t *testing.T) {
	withOlderRecords(t, func(w *einmaltest.World, calls func() []string) {
		w.Advance(time.Second)
		w.Create(settled("1"))
		w.Advance(time.Second)
		open := exported(w)
		made := []string{"make 1", "invoice", "make 2", "make 3"}
		expectCalls(w, calls(), made...)
		for range 5 {
			replace(w, open)
			expectCalls(w, calls(), made...)
		}
		newest := exported(w)
		w.Restart()
		expectCalls(w, calls(), made...)
		if after := exported(w); after.Annotations[fixture.Identity+"/record"] != newest.Annotations[fixture.Identity+"/record"] {
			w.Errorf("the record is %s after a restart, want %s", after.Annotations, newest.Annotations)
		}
	})
}

// While the operator is down, a record of an open creation comes back that is older than an effect. The effect is not made again: a person is
// asked. The event names the client that has written the record, once.
func TestAnOlderRecordFromAStopMakesNoEffectAgain(t *testing.T) {
	var calls []string
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[corev1.ConfigMap](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				calls = append(calls, fmt.Sprint("make ", c.Attempt))
				if c.Attempt == 1 {
					return einmal.RetryAfter(time.Minute, errors.New("not yet"))
				}
				return sendInvoice(ctx, c, &calls)
			})
			return op
		})
		w.Advance(time.Second)
		w.Create(settled("1"))
		w.Advance(time.Second)
		open := exported(w)
		w.Advance(5 * time.Minute)
		made := []string{"make 1", "make 2", "invoice"}
		expectCalls(w, calls, made...)
		w.Stop()
		replace(w, open)
		w.Restart()
		w.Advance(5 * time.Minute)
		made = append(made, "make 2")
		expectCalls(w, calls, made...)
		expectOneEvent(w, "RecordReplaced")
		expectOneEvent(w, "HandlerFailed")
		w.Restart()
		w.Advance(5 * time.Minute)
		expectCalls(w, calls, made...)
		expectOneEvent(w, "RecordReplaced")
		w.AllowUnfinished("make")
	})
}

// expectOneEvent checks that there is one event with a reason.
func expectOneEvent(w *einmaltest.World, reason string) {
	w.Helper()
	found := eventsOf(w)
	of := slices.DeleteFunc(slices.Clone(found), func(line string) bool { return !strings.Contains(line, reason) })
	if len(of) != 1 {
		w.Errorf("%d events %s, want one: %q", len(of), reason, found)
	}
}

// kubectl rollout undo while the operator is down brings back the content and the record of then. That cannot be told from nothing having changed,
// so that no handler runs, but it is reported.
func TestARecordThatGoesBackWhileTheOperatorIsDownIsReported(t *testing.T) {
	withOlderRecords(t, func(w *einmaltest.World, calls func() []string) {
		w.Advance(time.Second)
		w.Create(settled("1"))
		made := []string{"make 1", "invoice", "make 2", "make 3"}
		expectCalls(w, calls(), made...)
		first := exported(w)
		w.Patch(settled(""), `{"data":{"v":"2"}}`)
		made = append(made, "tell 1 to 2")
		expectCalls(w, calls(), made...)
		w.Stop()
		replace(w, first)
		w.Restart()
		expectCalls(w, calls(), made...)
		expectOneEvent(w, "RecordReplaced")
		w.Patch(settled(""), `{"data":{"v":"3"}}`)
		made = append(made, "tell 1 to 3")
		expectCalls(w, calls(), made...)
		w.Restart()
		expectCalls(w, calls(), made...)
		expectOneEvent(w, "RecordReplaced")
	})
}

// The older record that comes back while the operator is down has an open update, whose next attempt is later. Its effect is not made again either.
func TestAnOlderRecordOfAWaitingUpdateMakesNoEffectAgain(t *testing.T) {
	var calls []string
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[corev1.ConfigMap](op).OnUpdate("bill", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				calls = append(calls, "bill "+c.Object.Data["v"])
				if c.Object.Data["v"] == "2" {
					return errors.New("not yet")
				}
				return sendInvoice(ctx, c, &calls)
			}, einmal.Backoff(time.Hour, time.Hour))
			return op
		})
		w.Advance(time.Second)
		w.Create(settled("1"))
		w.Advance(time.Second)
		w.Patch(settled(""), `{"data":{"v":"2"}}`)
		w.Advance(time.Second)
		open := exported(w)
		w.Patch(settled(""), `{"data":{"v":"3"}}`)
		w.Advance(time.Second)
		made := []string{"bill 2", "bill 3", "invoice"}
		expectCalls(w, calls, made...)
		w.Stop()
		replace(w, open)
		w.Restart()
		w.Advance(time.Minute)
		w.Patch(settled(""), `{"data":{"v":"3"}}`)
		w.Advance(2 * time.Hour)
		made = append(made, "bill 3")
		expectCalls(w, calls, made...)
		expectOneEvent(w, "HandlerFailed")
		w.AllowUnfinished("bill")
	})
}
