package virtual_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A reconciliation writes twice, and the first write meets a conflict. The second write is repeated. It does not count as rejected content,
// which would call the finished handler again.
func TestAConflictOfTheSecondWriteIsNoRejection(t *testing.T) {
	wiped := simulation.Fault{Kind: simulation.BookkeepingWiped, At: simulation.Point{What: "patch widgets.test.einmal.dev default/one", N: 1}}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnUpdate("note", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Annotations = map[string]string{"example.com/note": "seen"}
			c.Object.Status.Phase = "noted"
			return nil
		}, einmal.Fields("spec.size"))
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewWidget("one")
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if err := w.User.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":2}}`))); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		if made := w.Calls(); len(made) != 1 {
			t.Errorf("calls: %v", made)
		}
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil || one.Status.Phase != "noted" || len(one.Status.Records.Records) != 1 {
			t.Errorf("%v: the status is %+v", err, one.Status)
		}
	}, wiped)
}
