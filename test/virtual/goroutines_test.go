package virtual_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// After the operator has stopped, none of its goroutines is left: no watch, no timer, no daemon, no writer of watermarks.
func TestNoGoroutineIsLeftWhenTheOperatorHasStopped(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.Index(op, "by-team", byTeam)
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(context.Context, string) (fixture.Account, error) {
					return fixture.Account{}, nil
				}))
				return err
			})
			widgets.Reconcile("keep", fixture.Nothing[fixture.Widget], einmal.Owns[corev1.ConfigMap]())
			widgets.OnEvent("see", fixture.Nothing[fixture.Widget])
			widgets.Timer("tick", 10*time.Second, fixture.Nothing[fixture.Widget])
			widgets.Daemon("guard", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
				<-ctx.Done()
				return nil
			})
			einmal.ForEvery(op, einmal.Selector{Name: "cm"}).OnEvent("see", fixture.Nothing[unstructured.Unstructured])
			return op
		})
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		if left := ofTheOperator(); len(left) < 5 {
			w.Errorf("while the operator runs, there are only %d goroutines of it:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		w.Stop()
		synctest.Wait()
		for _, left := range ofTheOperator() {
			w.Errorf("a goroutine is left:\n%s", left)
		}
	})
}

// ofTheOperator returns the goroutines of this test that run code of the operator.
func ofTheOperator() (found []string) {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := strings.Split(string(stacks), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+`)
	operator := regexp.MustCompile(`einmal/internal/(engine|kindloop|reconciler|daemons|kindstore|report|edge/kube)\.`)
	own := bubble.FindString(all[0]) // The first is the goroutine that asks.
	for _, one := range all[1:] {
		header, _, _ := strings.Cut(one, "\n")
		if bubble.FindString(header) == own && operator.MatchString(one) && !strings.Contains(one, "internal/testkit/apiserver") {
			found = append(found, one)
		}
	}
	return found
}
