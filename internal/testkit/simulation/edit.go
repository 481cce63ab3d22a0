package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What others add to objects.
const (
	editedKey = "example.com/edited"
	byAUser   = "by a user"
	byAnother = "by-another-writer"
)

// editedLabel is where another writer adds a label to a child.
func editedLabel() object.Path { return object.Path{"metadata", "labels", editedKey} }

// editedAnnotation is where a user adds an annotation.
func editedAnnotation() object.Path { return object.Path{"metadata", "annotations", editedKey} }

// NoteEdit notes that a user has made a merge patch. Edits returns those of a run, by object.
func (w *World) NoteEdit(kind, namespace, name, merge string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.edits == nil {
		w.edits = map[string][]string{}
	}
	key := kind + " " + namespace + "/" + name
	w.edits[key] = append(w.edits[key], merge)
}

// Edits returns the merge patches of users, by object.
func (w *World) Edits() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.edits)
}

// noteWithoutTarget notes that a fault had nothing to change. WithoutTarget returns those faults.
func (w *World) noteWithoutTarget(fault Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withoutTarget = append(w.withoutTarget, fault.String())
}

// WithoutTarget returns the faults that had nothing to change.
func (w *World) WithoutTarget() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.withoutTarget)
}

// nextEdit is the merge patch of a user in the middle of a handler: an annotation, and what the scenario changes next in the object.
func (w *World) nextEdit(one *unstructured.Unstructured) ([]byte, error) {
	merge := object.Body{}
	key := one.GetKind() + " " + one.GetNamespace() + "/" + one.GetName()
	w.mu.Lock()
	made, all := len(w.edits[key]), w.setup.Edits[key]
	w.mu.Unlock()
	if made < len(all) {
		if err := json.Unmarshal([]byte(all[made]), &merge); err != nil {
			return nil, fmt.Errorf("read the next edit of %s: %w", key, err)
		}
		delete(merge, "status")
		delete(merge, "metadata")
	}
	return json.Marshal(object.With(merge, editedAnnotation(), byAUser))
}

// editChild writes into the annotations and the labels of a child. It adds no label to an object that the operator handles: its handlers may
// answer to that.
func (w *World) editChild(child *unstructured.Unstructured, n int) error {
	err := w.writeRecord(*child.DeepCopy(), record.Annotation, fmt.Sprintf(`{"v":1,"n":%d}`, n))
	if err != nil || w.handlesKind(child) {
		return err
	}
	text, err := json.Marshal(object.With(object.Body{}, editedLabel(), byAnother))
	if err != nil {
		return err
	}
	if err := w.User.Patch(context.Background(), child, client.RawPatch(types.MergePatchType, text)); err != nil {
		return err
	}
	w.history.expect(string(child.GetUID())+strings.Join(editedLabel(), "."), byAnother)
	return nil
}

// keptAnnotation complains where the operator has removed the annotation that a user has added to an object.
func (w *World) keptAnnotation(one unstructured.Unstructured) {
	want, got := w.history.expected(string(one.GetUID())+strings.Join(editedAnnotation(), ".")), object.Text(one.Object, editedAnnotation()...)
	if want != "" && got != want {
		w.setup.Failed(fmt.Errorf("%s %s: a user has set the annotation %s, and now it is %q: what others write is to stay", //nolint:err113 // It is a report.
			one.GetKind(), one.GetName(), editedKey, got))
	}
}

// keptLabel complains where the operator has removed the label that another writer has added to a child.
func (w *World) keptLabel(one unstructured.Unstructured) {
	want := w.history.expected(string(one.GetUID()) + strings.Join(editedLabel(), "."))
	got := object.Text(one.Object, editedLabel()...)
	if want != "" && got != want {
		w.setup.Failed(fmt.Errorf("%s %s: another writer has set the label %s, and now it is %q: what others write is to stay", //nolint:err113 // It is a report.
			one.GetKind(), one.GetName(), editedKey, got))
	}
	if got == byAnother {
		labels := one.GetLabels()
		delete(labels, editedKey)
		one.SetLabels(labels)
		if len(labels) == 0 {
			unstructured.RemoveNestedField(one.Object, "metadata", "labels")
		}
	}
}

// readsOnly reports whether a point is a read.
func readsOnly(what string) bool { return strings.HasPrefix(what, verbGet+" ") }

// handlesKind reports whether the operator handles objects of this kind.
func (w *World) handlesKind(one *unstructured.Unstructured) bool {
	return slices.ContainsFunc(w.handledKinds(), func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == one.GroupVersionKind().GroupKind() })
}
