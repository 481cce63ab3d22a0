package simulation

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// replacement returns the text to write over a record of an object; "" for none.
type replacement func(one unstructured.Unstructured, at object.Path) string

// replaceRecords writes other text over the operator's record of every object that has one, and returns how many it has replaced.
func (w *World) replaceRecords(by replacement) (replaced int) {
	for _, one := range w.handled() {
		for _, carrier := range record.Carriers() {
			at := carrier.Path(w.declared.Identity)
			if one.GetDeletionTimestamp() != nil || object.Text(one.Object, at...) == "" {
				continue
			}
			text := by(one, at)
			if text == "" {
				continue
			}
			if err := w.writeText(one.DeepCopy(), carrier, at, text); client.IgnoreNotFound(err) != nil {
				w.setup.Failed(fmt.Errorf("replace the record: %w", err))
			}
			replaced++
		}
	}
	return replaced
}

// foreignRecord returns text that is no record of the object. A manifest that was exported from another cluster holds such a record, and an edit by
// hand makes one.
func foreignRecord(n int) replacement {
	return func(unstructured.Unstructured, object.Path) string {
		if n%2 == 0 {
			return "no record"
		}
		return `{"v":1,"uid":"another-object","apiVersion":"v1","base":"another-digest"}`
	}
}

// goBack puts an older record back into every object for which there is one.
func (w *World) goBack(fault Fault) {
	if w.replaceRecords(w.olderRecord(fault.At.N)) == 0 {
		w.noteWithoutTarget(fault)
	}
}

// olderRecord returns a record that the operator wrote before the one that the object has: for odd numbers the first one, for even numbers the one
// just before. kubectl rollout undo puts such a record back, and so does a manifest that was exported earlier.
func (w *World) olderRecord(n int) replacement {
	return func(one unstructured.Unstructured, at object.Path) string {
		older := w.history.recordsBefore(placeOf(one, at), object.Text(one.Object, at...))
		switch {
		case len(older) == 0:
			return ""
		case n%2 == 0:
			return older[len(older)-1]
		default:
			return older[0]
		}
	}
}

// forgeRecords does what a user can do who may annotate objects, but not write their status: it writes into an annotation of each object that has a
// record in its status another one, which claims to be newer and that nothing is left to do.
func (w *World) forgeRecords(fault Fault) {
	forged := 0
	for _, one := range w.handled() {
		from := object.Text(one.Object, record.Status.Path(w.declared.Identity)...)
		if from == "" {
			continue
		}
		text, err := forgedRecord(from)
		if err == nil {
			err = client.IgnoreNotFound(w.writeText(one.DeepCopy(), record.Annotation, record.Annotation.Path(w.declared.Identity), text))
		}
		if err != nil {
			w.setup.Failed(fmt.Errorf("forge a record: %w", err))
		}
		forged++
	}
	if forged == 0 {
		w.noteWithoutTarget(fault)
	}
}

// forgedRecord returns a record that says that all is done, and other results of steps.
func forgedRecord(from string) (string, error) {
	r, err := record.Decode(from)
	if err != nil {
		return "", err
	}
	r.Writes += 1000
	r.Deleted = true
	for id, entry := range r.Handlers {
		entry.Outcome, entry.Steps = record.Done, maps.Clone(entry.Steps)
		for step, done := range entry.Steps {
			done.Result = []byte("{}")
			entry.Steps[step] = done
		}
		r = r.With(id, entry)
	}
	return r.Encode()
}

// noteRecords keeps in mind the records that an object holds after a write of the operator.
func (w *World) noteRecords(answer []byte) {
	var one unstructured.Unstructured
	if json.Unmarshal(answer, &one.Object) != nil || one.GetUID() == "" {
		return
	}
	for _, carrier := range record.Carriers() {
		at := carrier.Path(w.declared.Identity)
		if text := object.Text(one.Object, at...); text != "" {
			w.history.noteRecord(placeOf(one, at), text)
		}
	}
}

// placeOf names the place of a record.
func placeOf(one unstructured.Unstructured, at object.Path) string {
	return string(one.GetUID()) + at.String()
}

// noteRecord keeps a record in mind, in the order of the writes.
func (h *history) noteRecord(place, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.records == nil {
		h.records = map[string][]string{}
	}
	if known := h.records[place]; len(known) == 0 || known[len(known)-1] != text {
		h.records[place] = append(known, text)
	}
}

// recordsBefore returns the records that the operator wrote in a place before the one that is there now, in the order of the writes.
func (h *history) recordsBefore(place, now string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, text := range h.records[place] {
		if text == now {
			return h.records[place][:i]
		}
	}
	return nil
}
