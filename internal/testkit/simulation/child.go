package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// disturbChild edits, replaces or deletes the object that the point of the fault is about.
func (w *World) disturbChild(fault Fault) {
	child, err := w.objectOf(fault.At.What)
	switch {
	case err != nil:
	case w.sparesChild(fault, child):
		w.noteWithoutTarget(fault)
	case fault.Kind == ChildEdited:
		err = w.editChild(child, fault.At.N)
	case fault.Kind == IdleChildEdited:
		var edited bool
		if edited, err = w.editData(child); !edited {
			w.noteWithoutTarget(fault)
		}
	case fault.Kind == ChildDeleted, fault.Kind == IdleChildDeleted:
		w.noteTakenAway(child)
		err = w.User.Delete(context.Background(), child)
	default:
		w.noteTakenAway(child)
		err = w.replace(child)
	}
	if apierrors.IsNotFound(err) {
		w.noteWithoutTarget(fault)
	}
	if client.IgnoreNotFound(err) != nil && !apierrors.IsAlreadyExists(err) {
		w.setup.Failed(fmt.Errorf("%s %s: %w", fault.Kind, fault.At.What, err))
	}
}

// sparesChild reports whether a child stays as it is, because the operator could not restore it, or would lose it only later.
func (w *World) sparesChild(fault Fault, child *unstructured.Unstructured) bool {
	var besides []string
	if fault.Kind.WhileIdle() { // A user who writes the status plays a controller, which writes it again.
		besides = []string{statusOf}
	}
	notItsOwn := writtenByUser(child, besides...) || w.handlesKind(child)
	switch fault.Kind {
	case ChildDeleted:
		return notItsOwn || w.controlsOthers(child)
	case IdleChildEdited, IdleChildDeleted: // What a Secret holds may be what cannot be made again.
		return notItsOwn || isSecret(*child)
	case ChildReplaced, IdleChildReplaced:
		held := len(child.GetFinalizers()) > 0 || child.GetKind() == "Namespace" // It is only gone later.
		return held || w.controlsOthers(child) || readsOnly(fault.At.What) && notItsOwn
	default: // The others change nothing that the operator could not restore.
		return false
	}
}

// noteTakenAway notes that a child is deleted or replaced. TakenAway returns those children.
func (w *World) noteTakenAway(child *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.takenAway == nil {
		w.takenAway = map[string]bool{}
	}
	w.takenAway[nameOf(*child)] = true
}

// TakenAway are the children that faults have deleted or replaced, by the names that Objects has. Their generations begin again.
func (w *World) TakenAway() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.takenAway)
}

// controlsOthers reports whether a child is the controller of other objects, such as a StatefulSet with Pods. They would be deleted with it, and those
// that its controller makes instead can differ from them.
func (w *World) controlsOthers(child *unstructured.Unstructured) bool {
	return slices.ContainsFunc(w.everything(), func(one unstructured.Unstructured) bool { return metav1.IsControlledBy(&one, child) })
}

// statusOf is the subresource of the status.
const statusOf = "status"

// writtenByUser reports whether a user has written fields of an object, besides those of some subresources. The operator cannot restore these.
func writtenByUser(one *unstructured.Unstructured, besides ...string) bool {
	return slices.ContainsFunc(one.GetManagedFields(), func(of metav1.ManagedFieldsEntry) bool {
		return of.Manager == user && !slices.Contains(besides, of.Subresource)
	})
}

// replace deletes an object and creates it again with the same content, as kubectl replace --force does. It has another uid then.
func (w *World) replace(one *unstructured.Unstructured) error {
	if err := w.User.Delete(context.Background(), one); err != nil {
		return err
	}
	again := one.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(again.Object, "metadata", field)
	}
	return w.User.Create(context.Background(), again)
}
