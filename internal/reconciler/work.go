package reconciler

import (
	"fmt"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// unfit explains a refusal that is about the size of the record.
func (w *work) unfit(refusal error) error {
	if !kube.TooLarge(refusal) {
		return refusal
	}
	return fmt.Errorf("write a record of %d bytes (make room in the annotations of the object): %w", len(w.journal.Text()), refusal)
}

// answer tells what has become of what was handed in.
func (w *work) answer(written object.Body, err error) {
	if w.answered != nil {
		w.answered(written, err)
		w.answered = nil
	}
}

// work is what a reconciliation has to write.
type work struct {
	journal *journal.Journal
	// attempted reports whether a handler ran, or was given up. canceled: an attempt that was planned was not made, since the
	// object has changed meanwhile.
	attempted, canceled bool
	// answered is called with the result of writing what a daemon has handed in; it may be nil.
	answered func(object.Body, error)
	// intends: intents of effects are to be stored, which must not go into a record that another process has written
	// meanwhile.
	intends bool
	// running are the steps of the attempt that goes on; nil for none.
	running *attempt.Steps
	// ended is why nothing more is to be begun: another process has done that, or the object is gone. It is nil otherwise.
	ended error
}
