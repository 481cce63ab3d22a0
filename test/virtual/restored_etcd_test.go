package virtual_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// resize changes the size of a widget.
func (w *virtualWorld) resize(t *testing.T, name string, size int) {
	t.Helper()
	if err := w.User.Patch(t.Context(), fixture.NewWidget(name), fixture.SizePatch(size)); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
}

// The etcd of the API server is restored from an older copy while the operator runs. It lists everything again at once, and says so. It remembers what it has
// done since the copy: no effect is made again, and update handlers get the object that they have seen last as the old one. Log lines name objects that are
// gone and objects that are back.
func TestARestoredEtcdIsNoticed(t *testing.T) {
	j, log := &fixture.Journal{}, &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) { fixture.NoteLives(op, j) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Second) // An object that is as old as the process can have had effects before.
		for _, name := range []string{"same", "changed", "deleted"} {
			w.create(t, fixture.NewWidget(name))
		}
		w.Pass(time.Minute)
		before := w.Server.Copy()
		w.resize(t, "changed", 2)
		w.create(t, fixture.NewWidget("later"))
		if err := w.User.Delete(t.Context(), fixture.NewWidget("deleted")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		w.Server.Restore(before)
		w.Pass(time.Minute)
		j.Called(t, "same", "invoice", "make 1")
		j.Called(t, "changed", "invoice", "make 1", "resize 1 to 2", "resize 2 to 1")
		j.Called(t, "later", "invoice", "make 1")
		j.Called(t, "deleted", "invoice", "make 1", "end 1")
		fixture.ExpectLine(t, log, "level=WARN", "msg~the API server has older data than before")
		fixture.ExpectLine(t, log, "level=WARN", "msg=the object is gone, and its delete handlers have not run", "object=default/later")
		fixture.ExpectLine(t, log, "level=WARN", "msg=the object is back although its delete handlers have run", "object=default/deleted")
		written := len(w.Writes())
		w.Pass(time.Hour)
		for _, write := range w.Writes()[written:] {
			if strings.HasPrefix(write.Resource, "widgets.") {
				t.Errorf("written at rest: %s", write)
			}
		}
		w.resize(t, "same", 3)
		j.Called(t, "same", "invoice", "make 1", "resize 1 to 3")
	})
}

// A daemon sees its object as it is after a restore, although it has seen a newer version.
func TestADaemonSeesItsObjectOfARestoredEtcd(t *testing.T) {
	j := &fixture.Journal{}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			for {
				j.Add(c.Object.Name, fmt.Sprint(c.Object.Spec.Size))
				if err := fixture.Pause(ctx, time.Minute); err != nil {
					return err
				}
				if err := c.Sync(ctx); err != nil {
					return err
				}
			}
		})
	}, func(t *testing.T, w *virtualWorld) {
		w.create(t, fixture.NewWidget("one"))
		w.Pass(90 * time.Second)
		before := w.Server.Copy()
		w.resize(t, "one", 2)
		w.Server.Restore(before)
		w.Pass(2 * time.Minute)
		j.Called(t, "one", "1", "1", "2", "1", "1")
	})
}

// The answer to the request that removes the finalizer is lost, and the object is gone. Its delete handlers have run, so the log does not claim that they have
// not.
func TestADeletionWhoseAnswerIsLostIsNoLoss(t *testing.T) {
	j, log := &fixture.Journal{}, &fixture.Log{}
	removal := simulation.Point{What: "patch widgets.test.einmal.dev default/one", N: 2}
	virtually(t, log, func(op *einmal.Operator) { fixture.NoteLives(op, j) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Second)
		w.create(t, fixture.NewWidget("one"))
		w.Pass(time.Minute)
		if err := w.User.Delete(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		j.Called(t, "one", "invoice", "make 1", "end 1")
		fixture.ExpectLine(t, log, "msg=the object is gone")
		fixture.ExpectLine(t, log, "error~connection")
	}, simulation.Fault{Kind: simulation.AnswerLost, At: removal})
}

// The copy has the intent of an effect, but not its result. The process that has made the effect remembers the result, and does not make it again. The next
// process finds it in the record.
func TestAnEffectSinceTheCopyIsNotMadeAgain(t *testing.T) {
	var snapshot func()
	made, log := 0, &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			_, err := einmal.Effect(ctx, c, "invoice", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
				made++
				snapshot()
				return fixture.Account{}, nil
			}))
			return err
		})
	}, func(t *testing.T, w *virtualWorld) {
		var copied *store.Copy
		snapshot = func() { copied = w.Server.Copy() }
		w.Pass(time.Second)
		w.create(t, fixture.NewWidget("one"))
		w.Pass(time.Minute)
		w.Server.Restore(copied)
		w.Pass(time.Hour)
		w.restart(func() {})
		w.Pass(time.Hour)
		if made != 1 || log.Count("error~is unknown") > 0 {
			t.Errorf("the effect was made %d times:\n%s", made, log)
		}
	})
}
