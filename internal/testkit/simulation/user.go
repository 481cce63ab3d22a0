package simulation

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// actAsUser edits or deletes the object whose handler has come to the point of a fault.
func (w *World) actAsUser(fault Fault, on *unstructured.Unstructured) {
	if on == nil {
		w.noteWithoutTarget(fault)
		return
	}
	if err := w.actOn(on, fault.Kind); client.IgnoreNotFound(err) != nil {
		w.setup.Failed(fmt.Errorf("%s: %w", fault.Kind, err))
	}
}

func (w *World) actOn(one *unstructured.Unstructured, kind Kind) error {
	if kind == UserDeletes {
		return w.User.Delete(context.Background(), one, client.PropagationPolicy("Background"))
	}
	text, err := w.nextEdit(one)
	if err != nil {
		return err
	}
	if err := w.User.Patch(context.Background(), one, client.RawPatch(types.MergePatchType, text)); err != nil {
		return err
	}
	w.history.expect(string(one.GetUID())+strings.Join(editedAnnotation(), "."), byAUser)
	return nil
}
