package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// TimeField is a field that holds a time.
type TimeField struct {
	// Kind is the kind of its objects, without a group.
	Kind string
	Path []string
	// Once counts the values that the operator gives it one after the other. Otherwise the last one is compared, and Within is how far
	// from each other those of two runs may be.
	Once   bool
	Within time.Duration
}

// noteTimes notes the times that an object holds after a write of the operator, where their changes are counted.
func (w *World) noteTimes(answer []byte) {
	if !slices.ContainsFunc(w.setup.Times, func(field TimeField) bool { return field.Once }) {
		return
	}
	var written unstructured.Unstructured
	if json.Unmarshal(answer, &written.Object) != nil {
		return
	}
	for _, field := range w.setup.Times {
		if text := object.Text(written.Object, field.Path...); field.Once && written.GetKind() == field.Kind && text != "" {
			w.history.set(fieldOf(written, field), text)
		}
	}
}

// Field returns what a field holds now, by object and field.
func (w *World) Field(field TimeField) map[string]string {
	texts := map[string]string{}
	for _, one := range w.everything() {
		if text := object.Text(one.Object, field.Path...); one.GetKind() == field.Kind && text != "" {
			texts[fieldOf(one, field)] = text
		}
	}
	return texts
}

func fieldOf(one unstructured.Unstructured, field TimeField) string {
	return fmt.Sprintf("%s, %s", nameOf(one), object.Path(field.Path))
}

// Deleting lists the objects that are being deleted, and what holds them.
func (w *World) Deleting() []string {
	var names []string
	for _, one := range w.everything() {
		if one.GetDeletionTimestamp() != nil {
			names = append(names, fmt.Sprintf("%s (finalizers %v)", nameOf(one), one.GetFinalizers()))
		}
	}
	return names
}
