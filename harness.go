package einmal

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/einmal-operators/einmal/internal/engine"
)

// Scheme knows the types of the operator: the built-in kinds and those of the option Scheme. It is for the options of a
// manager of your own.
func (op *Operator) Scheme() *runtime.Scheme { return op.scheme }

// Observe lets package einmaltest see each attempt of a handler, and sends the operator's log to the test. The type of
// its argument is internal: nobody else can call it.
func (op *Operator) Observe(witness func(engine.Attempt), log *slog.Logger) engine.Declared {
	op.settings.Witness, op.settings.Log = witness, log
	declared := engine.Declared{Identity: op.settings.Identity, Scheme: op.scheme, CRDs: op.crds}
	declared.Rights, _ = op.rights() // What is wrong with them is a registration mistake.
	for _, kind := range op.kinds {
		declared.Kinds = append(declared.Kinds, kind.kind.GVK)
	}
	return declared
}
