package explore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// With more objects than workers and slow handlers, objects wait in the queue for minutes. Each is still handled once, whatever fails meanwhile.
func TestWhateverGoesWrongALongQueueEndsTheSame(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		outside := &fixture.Registry{}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"),
				einmal.Workers(1), einmal.ClockMargin(10*time.Second))
			gadgets, of := fixture.Gadgets(op)
			register := func(wanted bool) einmal.HandlerFunc[unstructured.Unstructured] {
				return func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
					if err := fixture.Pause(ctx, 3*time.Minute); err != nil {
						return err
					}
					return outside.Set(p, of.Name(c.Object), wanted)
				}
			}
			gadgets.OnCreate("greet", fixture.Nothing[unstructured.Unstructured])
			gadgets.OnCreate("register", register(true))
			gadgets.OnDelete("unregister", register(false))
			return op
		})
		w.Advance(2 * time.Minute)
		for _, name := range []string{"one", "two", "three"} {
			gadget := fixture.NewGadget("one", 1)
			gadget.SetName(name)
			w.Create(gadget)
		}
		w.Advance(30 * time.Minute)
		gadget := fixture.NewGadget("one", 1)
		gadget.SetName("two")
		w.Delete(gadget)
		w.Advance(30 * time.Minute)
		w.Outcome("registered", outside.Registered())
		// Records that are lost while no process runs leave a condition. The margin allows clocks to differ by seconds only.
	}, einmaltest.Without(einmaltest.Wipes, einmaltest.Clocks))
}

// A release that stores the record in another place than the release before repeats no handler.
func TestWhateverGoesWrongARecordMovesToItsNewPlace(t *testing.T) {
	for _, move := range fixture.CarrierMoves() {
		t.Run(move.Name, func(t *testing.T) {
			einmaltest.Explore(t, func(w *einmaltest.World) {
				var updated atomic.Bool
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op, carrier := fixture.NewOperator(), move.From
					if updated.Load() {
						carrier = move.To
					}
					fixture.DeclareRelease(op, carrier, &fixture.Journal{})
					return op
				})
				one := fixture.NewTenantWithLimit("one")
				w.Create(one)
				w.Advance(10 * time.Minute)
				updated.Store(true)
				w.Restart()
				w.Advance(10 * time.Minute)
				w.Patch(one, `{"spec":{"limit":2}}`)
				w.Advance(10 * time.Minute)
				w.Restart()
				w.Advance(10 * time.Minute)
			}, einmaltest.Without(einmaltest.Wipes))
		})
	}
}

// A handler whose crashes count as attempts makes its effect once.
func TestWhateverGoesWrongACountedAttemptMakesItsEffectOnce(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) { countedAccount(w, fixture.NewWidget("one")) })
}

func countedAccount(w *einmaltest.World, one client.Object) {
	outside := &bank{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		widgets, of := fixture.Widgets(op)
		widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			if _, err := einmal.Effect(ctx, c, "account", recoveries(outside, p)["keyed"]); err != nil {
				return err
			}
			of.SetPhase(c.Object, "has an account")
			return fixture.Pause(ctx, 2*time.Second)
		}, einmal.MaxAttempts(10))
		return op
	})
	w.Create(one)
	w.Advance(20 * time.Minute)
	open, _ := outside.accounts()
	w.Outcome("accounts", open)
	w.Outcome("phase", fixture.Phase(w, one))
}
