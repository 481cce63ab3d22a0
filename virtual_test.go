package einmal_test

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// virtually runs an operator in virtual time, on an API server in memory, and lets use act there. The operator is made
// anew for each of its processes, with the kinds of these tests.
func virtually(t *testing.T, log *syncedText, declare func(*einmal.Operator), use func(*testing.T, *simulation.World)) {
	t.Helper()
	kinds, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		made := func() simulation.Operator {
			op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.CRDs(kinds), einmal.StateNamespace("default"))
			declare(op)
			return op
		}
		w, err := simulation.New(simulation.Setup{
			Definitions: &simulation.Definitions{},
			Log:         slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Failed:      func(err error) { t.Error(err) },
		}, made())
		if err != nil {
			t.Fatal(err)
		}
		defer w.End()
		w.Start(func(*simulation.Process) simulation.Operator { return made() })
		use(t, w)
	})
}
