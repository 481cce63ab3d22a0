package virtual_test

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// virtualWorld is an API server in memory, in virtual time, and an operator on it.
type virtualWorld struct {
	*simulation.World

	start func()
}

// restart lets something happen between one process of the operator and the next.
func (w *virtualWorld) restart(meanwhile func()) {
	w.Stop()
	meanwhile()
	w.start()
}

// virtually runs an operator in virtual time and calls use there. The operator is created for each of its processes, with the kinds of these
// tests. The faults say what goes wrong.
func virtually(t *testing.T, log io.Writer, declare func(*einmal.Operator), use func(*testing.T, *virtualWorld), faults ...simulation.Fault) {
	t.Helper()
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: fixture.Group, Version: "v1", Kind: "Gadget"})
	virtuallyMade(t, log, func() simulation.Operator {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"),
			einmal.Applies(&corev1.ConfigMap{}), einmal.Permissions(&fixture.Widget{}, "update", "update/status"), einmal.Permissions(gadget, "update", "update/status"))
		declare(op)
		return op
	}, use, faults...)
}

// virtuallyMade is virtually for an operator that the test makes itself.
func virtuallyMade(t *testing.T, log io.Writer, made func() simulation.Operator, use func(*testing.T, *virtualWorld), faults ...simulation.Fault) {
	t.Helper()
	inVirtualTime(t, slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}), made, use, faults...)
}

func inVirtualTime(t *testing.T, log slog.Handler, made func() simulation.Operator, use func(*testing.T, *virtualWorld), faults ...simulation.Fault) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := simulation.New(simulation.Setup{
			Schedule:    faults,
			Definitions: &simulation.Definitions{},
			Log:         slog.New(log),
			Failed:      func(err error) { t.Error(err) },
		}, made())
		if err != nil {
			t.Fatal(err)
		}
		defer w.End()
		started := &virtualWorld{World: w}
		started.start = func() {
			w.Start(simulation.Versions{Current: func(*simulation.Process) simulation.Operator { return made() }})
		}
		started.start()
		use(t, started)
	})
}
