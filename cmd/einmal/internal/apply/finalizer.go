package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// finalizerSuffix follows the operator's identity, which is also its field manager, in the finalizer of an operator that uses
// the framework.
const finalizerSuffix = "/finalizer"

// Held is an object with finalizers of an operator: it stays after its deletion until they are removed.
type Held struct {
	Applied
	// Finalizers are those of the operator. Other controllers may have set more.
	Finalizers []string
	// Patch is the JSON patch that removes the finalizers. It fails if they have changed in the meantime.
	Patch string
}

// Held returns the objects that have finalizers of an operator, among the given objects and those that are deleted with
// them: the objects in a namespace, and the objects of a CustomResourceDefinition. kinds are the operator's definitions.
// program is the field manager of an operator that sets no other one: the name of its program. Objects that cannot be read
// are left out.
func (a *Applier) Held(ctx context.Context, objects, kinds []Applied, program string) []Held {
	var held []Held
	add := func(one Applied) {
		finalizers := operatorFinalizers(one.Unstructured, program)
		same := func(other Held) bool { return other.UID == one.UID }
		if len(finalizers) > 0 && !slices.ContainsFunc(held, same) {
			held = append(held, Held{Applied: one, Finalizers: finalizers, Patch: removal(one.GetFinalizers(), finalizers)})
		}
	}
	for _, one := range objects {
		live, err := a.resource(one).Get(ctx, one.GetName(), metav1.GetOptions{})
		if err == nil && live.GetUID() == one.UID {
			one.Object = manifest.Object{Unstructured: live, Origin: one.Origin}
			add(one)
		}
	}
	for _, kind := range kinds {
		for _, one := range a.deletedWith(ctx, kind, objects) {
			add(one)
		}
	}
	return held
}

// deletedWith returns the objects of a definition that are deleted together with the given objects.
func (a *Applier) deletedWith(ctx context.Context, kind Applied, objects []Applied) []Applied {
	served := servedVersions(kind.Unstructured)
	if len(served) == 0 {
		return nil
	}
	mapping, err := a.mapping(served[0])
	if err != nil {
		return nil
	}
	list, err := a.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var found []Applied
	for i := range list.Items {
		item := &list.Items[i]
		if slices.ContainsFunc(objects, func(one Applied) bool {
			return one.UID == kind.UID || one.GetKind() == "Namespace" && one.GetName() == item.GetNamespace()
		}) {
			found = append(found, Applied{Object: manifest.Object{Unstructured: item}, Resource: mapping.Resource, UID: item.GetUID()})
		}
	}
	return found
}

// operatorFinalizers returns the finalizers of an object that an operator has set, according to the managed fields.
func operatorFinalizers(object *unstructured.Unstructured, program string) []string {
	var found []string
	for _, finalizer := range object.GetFinalizers() {
		field := strconv.Quote("v:" + strconv.Quote(finalizer)) // Finalizers are plain ASCII.
		if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			own := entry.Manager == program || entry.Manager+finalizerSuffix == finalizer
			return own && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(field))
		}) {
			found = append(found, finalizer)
		}
	}
	return found
}

// removal returns the JSON patch that removes some of an object's finalizers.
func removal(all, some []string) string {
	var steps []map[string]string
	for i, finalizer := range slices.Backward(all) { // so that removals do not move the finalizers that follow
		if slices.Contains(some, finalizer) {
			path := fmt.Sprintf("/metadata/finalizers/%d", i)
			steps = append(steps, map[string]string{"op": "test", "path": path, "value": finalizer},
				map[string]string{"op": "remove", "path": path})
		}
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return err.Error() // Strings can always be written.
	}
	return string(patch)
}
