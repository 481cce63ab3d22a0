// Package report tells people what happens to objects: in the log, as events, in metrics and as conditions. It redacts secrets in its events, in
// what handlers log, and in the errors that it is asked to redact. It decides nothing and changes nothing.
package report

import (
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// Kind reports what happens to the objects of one kind. Goroutines can share it.
type Kind struct {
	// Identity is the name of the operator.
	Identity string
	GVK      schema.GroupVersionKind
	// Log has the name of the kind among its attributes.
	Log      *slog.Logger
	Events   *Events
	Metrics  *metrics.Kind
	Redactor *redact.Redactor
	// LogEvents is the level from which on what handlers log is an event too; nil for never.
	LogEvents *slog.Level
	// OnAttempt is called when an attempt begins, with an empty outcome, and when it has ended. It may be nil.
	OnAttempt func(of types.NamespacedName, run handler.Run, outcome record.Outcome)

	// reported has what is reported once for the kind.
	reported sync.Map
}

// About returns what reports on an object of the kind, given as it was read. The body is nil if the object was not read.
func (k *Kind) About(key types.NamespacedName, body object.Body) Object {
	attributes := []any{"object", key.String()}
	if generation, counted := object.Get(body, "metadata", "generation"); counted { // Not all kinds have one.
		attributes = append(attributes, "generation", generation)
	}
	return Object{Log: k.Log.With(attributes...), kind: k, key: key, body: body}
}

// Once reports whether it is called with this subject for the first time.
func (k *Kind) Once(subject any) bool {
	_, before := k.reported.LoadOrStore(subject, true)
	return !before
}

// DigestKeyChanged reports, once for the kind, that the digests of Secrets were made with another key than the one that is kept now.
func (k *Kind) DigestKeyChanged(place types.NamespacedName) {
	if k.Once("digest-key") {
		k.Log.Warn("Secret digests were made with a different key; changes since then cannot be detected, current content becomes the baseline",
			"key", place.String())
	}
}

// ConditionLeftOut reports, once for the kind, that a condition of Einmal is not set.
func (k *Kind) ConditionLeftOut(condition, reason string) {
	if k.Once("condition " + condition) {
		k.Log.Warn("cannot set a condition, the log and events report the same", "condition", condition, "reason", reason,
			"remedy", "accept all conditions of the form metav1.Condition in the schema of the kind")
	}
}

// NoFieldForRecords reports, once for the kind, that its records are stored in an annotation because of its Go type.
func (k *Kind) NoFieldForRecords() {
	if k.Once("records") {
		k.Log.Warn("Go type has no field for records in its status, storing records in an annotation",
			"remedy", "embed einmal.Records in the status type")
	}
}

// Object reports what happens to one object.
type Object struct {
	// Log is the log of the kind, with the name and the generation of the object.
	Log  *slog.Logger
	kind *Kind
	key  types.NamespacedName
	body object.Body
}
