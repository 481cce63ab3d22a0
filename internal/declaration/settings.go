package declaration

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// StopMargin is how long after the grace period of handlers Einmal still saves what they return. A manager must wait longer.
const StopMargin = 3 * time.Second

// Settings are the limits of an operator.
type Settings struct {
	// Identity names the operator: its finalizer, its record, its field manager.
	Identity string
	// Workers is how many objects of one kind are handled at the same time.
	Workers int
	// AttemptTimeout ends the context of an attempt, unless the handler has a timeout of its own.
	AttemptTimeout time.Duration
	// Grace is how long running handlers may go on after the operator receives the signal to stop; then their context ends.
	Grace time.Duration
	// Window is how long the outcome of a finished handler may be unsaved while another one runs.
	Window time.Duration
	// Margin is how old an object must be before a watermark passes it.
	Margin time.Duration
	// Namespaces are the ones that are served; Home is the one that watermarks are kept in, "" for none.
	Namespaces filter.Namespaces
	Home       string
	Log        *slog.Logger
	// LogEvents is the level from which on what handlers log is an event too; nil for never.
	LogEvents *slog.Level
	// OnAttempt is called when an attempt begins, with an empty Outcome, and when it ends, unless the object is gone. It may be nil. Only tests
	// set it.
	OnAttempt func(Attempt)
}

// Attempt is one run of a handler that has ended.
type Attempt struct {
	Kind    schema.GroupVersionKind
	Object  types.NamespacedName
	Handler string
	Reason  cause.Cause
	// Number counts from 1.
	Number  int
	Outcome record.Outcome
}

// Finalizer is the finalizer of the operator.
func (s Settings) Finalizer() string { return s.Identity + "/finalizer" }

// StatePlace returns where the operator stores its own state: the name of its ConfigMap, its Lease, and the Secret with the key of digests.
func (s Settings) StatePlace() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Home, Name: s.Identity}
}

// Serves reports whether objects of a namespace are handled. Cluster-scoped objects always are.
func (s Settings) Serves(namespace string) bool {
	return namespace == "" || s.Namespaces.Match(namespace)
}
