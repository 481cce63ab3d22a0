package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// A handler that looks again each hour does so 24 times a day.
func TestADayTakesMilliseconds(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("look") // It never ends.
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("looks.example.com")
			einmal.For[corev1.ConfigMap](op).OnCreate("look", func(context.Context, *einmal.Change[corev1.ConfigMap]) error {
				return einmal.RequeueAfter(time.Hour)
			})
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(time.Minute)
		w.Advance(24 * time.Hour)
		if looked := len(w.Calls()); looked != 1+24 {
			w.Errorf("looked %d times, want once at the creation and 24 times since", looked)
		}
	})
}

// A handler may ask the API server what it would say to a write.
func TestADryRunIsNoWrite(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("try.example.com", einmal.Permissions(&corev1.Secret{}, "create"))
			einmal.For[corev1.ConfigMap](op).Reconcile("try", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tried"}}
				return client.NewDryRunClient(c.Client).Create(ctx, made)
			})
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(time.Minute)
		if calls, writes := w.Calls(), w.Writes(); len(calls) != 1 || !strings.HasSuffix(calls[0].String(), ": done") || len(writes) > 0 {
			w.Errorf("calls %q, writes %q", calls, writes)
		}
	})
}

// What a handler was doing when its process was killed is not known to the next one, which begins again.
func TestAKilledOperatorSavesNothingAndStaysDown(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("slow.example.com")
			einmal.For[corev1.ConfigMap](op).OnCreate("work", func(ctx context.Context, _ *einmal.Change[corev1.ConfigMap]) error {
				select {
				case <-time.After(time.Minute):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(30 * time.Second)
		w.Kill()
		w.Advance(10 * time.Minute)
		if calls, writes := w.Calls(), w.Writes(); len(calls)+len(writes) > 0 {
			w.Errorf("killed in its first handler: calls %q, writes %q", calls, writes)
		}
		w.Restart()
		w.Advance(10 * time.Minute)
		if calls := w.Calls(); len(calls) != 1 || calls[0].String() != "work of default/one (create, attempt 1): done" {
			w.Errorf("started again: calls %q", calls)
		}
	})
}
