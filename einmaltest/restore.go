package einmaltest

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RestoreFromBackup deletes objects and creates them again as they were, in the given order, as a tool for backups does in a new cluster: each one gets a new
// uid, and has no owner references, finalizers and managed fields. Objects with the subresource status lose their status. Name the objects with what belongs
// to them, such as their children. An object that does not exist fails the test. If delete handlers must not run, as in a new cluster, call Stop before.
// The objects have their new state afterwards.
func (w *World) RestoreFromBackup(objects ...client.Object) {
	w.Helper()
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, one := range objects {
		if !w.Get(one) {
			w.Fatalf("restore %T %s from a backup: it does not exist", one, client.ObjectKeyFromObject(one))
		}
	}
	for _, one := range objects {
		deleted, _ := one.DeepCopyObject().(client.Object)
		if err := w.Client().Patch(w.Context(), deleted, noFinalizers); err != nil {
			w.Fatalf("restore %s from a backup: remove its finalizers: %v", one.GetName(), err)
		}
		w.Delete(deleted)
	}
	w.Advance(time.Minute) // The garbage collector deletes what the objects own.
	for _, one := range objects {
		one.SetUID("")
		one.SetResourceVersion("")
		one.SetGeneration(0)
		one.SetOwnerReferences(nil)
		one.SetManagedFields(nil)
		one.SetFinalizers(nil)
		w.Create(one)
	}
}
