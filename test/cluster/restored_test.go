package cluster_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An older copy of etcd is put back while an operator runs that is the only one, while one of two runs, and while none runs. A process that goes on remembers
// what it has done since the copy. All of them handle what changes afterwards.
func TestARestoredEtcdOnARealControlPlane(t *testing.T) {
	t.Run("alone", func(t *testing.T) { newWorld(t).outlivesRestore(t, einmal.RunOptions{SingleReplica: true}, 1) })
	t.Run("one replica", func(t *testing.T) { newWorld(t).outlivesRestore(t, einmal.RunOptions{}, 1) })
	t.Run("two replicas", func(t *testing.T) { newWorld(t).outlivesRestore(t, einmal.RunOptions{}, 2) })
	t.Run("while it is down", func(t *testing.T) { newWorld(t).restoredWhileDown(t) })
}

// runLives runs replicas of an operator.
func (w *world) runLives(t *testing.T, j *fixture.Journal, log *fixture.Log, options einmal.RunOptions, replicas int) (stop func()) {
	t.Helper()
	var stops []func()
	for range replicas {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("default"), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
		fixture.NoteLives(op, j)
		stops = append(stops, fixture.Run(t, op, w.Config, options))
	}
	return func() {
		for _, one := range stops {
			one()
		}
	}
}

// did waits until exactly these calls were made for an object.
func did(t *testing.T, j *fixture.Journal, name string, want ...string) {
	t.Helper()
	cluster.Until(t, "the calls for "+name, func() bool { return slices.Equal(j.Of(name), want) })
}

// changeSinceCopy changes and creates objects, and deletes one.
func (w *world) changeSinceCopy(t *testing.T, j *fixture.Journal) {
	t.Helper()
	w.setSize(t, "changed", 2)
	w.create(t, fixture.StatusCarrier(), "later")
	if err := w.Delete(t.Context(), fixture.NewUntypedWidget("deleted")); err != nil {
		t.Fatal(err)
	}
	did(t, j, "changed", "invoice", "make 1", "resize 1 to 2")
	did(t, j, "later", "invoice", "make 1")
	did(t, j, "deleted", "invoice", "make 1", "end 1")
	for range 200 { // New versions are lower than those of before, whatever the control plane writes when it starts.
		w.setSize(t, "much", 3)
		w.setSize(t, "much", 4)
	}
}

func (w *world) setSize(t *testing.T, name string, size int) {
	t.Helper()
	if err := w.Patch(t.Context(), fixture.NewUntypedWidget(name), fixture.SizePatch(size)); err != nil {
		t.Fatal(err)
	}
}

// copyAndChange creates objects, copies etcd and changes what there is. It returns what puts the copy back.
func (w *world) copyAndChange(t *testing.T, j *fixture.Journal) (restore func()) {
	t.Helper()
	for _, name := range []string{"same", "changed", "deleted", "much"} {
		w.create(t, fixture.StatusCarrier(), name)
		did(t, j, name, "invoice", "make 1")
	}
	restore = w.Snapshot(t)
	w.changeSinceCopy(t, j)
	return restore
}

func (w *world) outlivesRestore(t *testing.T, options einmal.RunOptions, replicas int) {
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	stop := w.runLives(t, j, log, options, replicas)
	restore := w.copyAndChange(t, j)
	restore()
	did(t, j, "changed", "invoice", "make 1", "resize 1 to 2", "resize 2 to 1")
	cluster.Until(t, "what cannot be known is said", func() bool {
		return log.Count("msg=the object is gone, and its delete handlers have not run", "object=default/later") == 1 &&
			log.Count("msg=the object is back although its delete handlers have run", "object=default/deleted") == 1
	})
	w.setSize(t, "same", 9)
	did(t, j, "same", "invoice", "make 1", "resize 1 to 9")
	stop()
}

func (w *world) restoredWhileDown(t *testing.T) {
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	stop := w.runLives(t, j, log, einmal.RunOptions{SingleReplica: true}, 1)
	restore := w.copyAndChange(t, j)
	stop()
	restore()
	later := &fixture.Journal{}
	stop = w.runLives(t, later, log, einmal.RunOptions{SingleReplica: true}, 1)
	w.setSize(t, "same", 9)
	did(t, later, "same", "resize 1 to 9")
	w.setSize(t, "changed", 7)
	did(t, later, "changed", "resize 1 to 7")
	w.create(t, fixture.StatusCarrier(), "later")
	did(t, later, "later", "invoice", "make 1")
	did(t, later, "deleted")
	stop()
}
