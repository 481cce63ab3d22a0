package virtual_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The outcome that a handler sets goes into the status, beside the fields of others, through the status subresource (scenario 56). Set and
// removed fields are one write, together with the record (scenario 57).
func TestTheOutcomeOfAHandlerIsOneWriteOfTheStatus(t *testing.T) {
	const theirs = "another.example.com"
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("say", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Object.Status.Phase = "made"
				return nil
			})
			widgets.OnUpdate("unsay", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Object.Status.Phase = ""
				return nil
			})
			return op
		})
		one := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}
		w.Create(one)
		merge := client.RawPatch(types.MergePatchType, []byte(`{"status":{"records":{"`+theirs+`":"{\"v\":1}"}}}`))
		if err := w.Client().Status().Patch(w.Context(), one, merge); err != nil {
			w.Fatal(err)
		}
		write := "patch widgets.test.einmal.dev default/one status"
		for _, phase := range []string{"made", ""} {
			before := len(w.Writes())
			w.Patch(one, `{"spec":{"color":"`+phase+`"}}`)
			w.Advance(time.Minute)
			if diff := cmp.Diff([]string{write}, w.Writes()[before:]); diff != "" {
				w.Errorf("writes until the phase is %q: %s", phase, diff)
			}
			w.Get(one)
			if one.Status.Phase != phase || one.Status.Records.Records[theirs] != `{"v":1}` {
				w.Errorf("the status is %+v, want the phase %q and what another operator keeps there", one.Status, phase)
			}
		}
	})
}
