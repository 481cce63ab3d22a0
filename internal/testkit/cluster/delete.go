package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteAllAtEnd deletes all objects of a list's kind when the test ends, and waits until they are gone. It removes their finalizers, since no
// operator runs any more. It does not wait until their dependents are gone: the garbage collector notices a new CRD only after half a minute. The
// client must know the kind. On a control plane that is not shared, it does nothing.
func (c *Cluster) DeleteAllAtEnd(t *testing.T, api client.Client, list client.ObjectList, options ...client.ListOption) {
	t.Helper()
	if !c.shared {
		return
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience) // The test's own context has ended.
		defer cancel()
		if err := deleteAll(ctx, api, list, options); err != nil {
			t.Errorf("delete what the test has left: %v", err)
		}
	})
}

// deleteAll repeats the deletion until no object is left: an operator that has just ended may have created one after the list.
func deleteAll(ctx context.Context, api client.Client, list client.ObjectList, options []client.ListOption) error {
	pause := time.NewTicker(pollInterval)
	defer pause.Stop()
	for {
		if err := api.List(ctx, list, options...); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		if meta.LenList(list) == 0 {
			return nil
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, is := item.(client.Object)
			if !is {
				return fmt.Errorf("%T is not an object", item)
			}
			return client.IgnoreNotFound(deleteOne(ctx, api, object))
		})
		if err != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %T are left: %w", meta.LenList(list), list, ctx.Err())
		}
	}
}

// deleteOne deletes an object without its finalizers.
func deleteOne(ctx context.Context, api client.Client, object client.Object) error {
	if len(object.GetFinalizers()) > 0 {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := api.Patch(ctx, object, patch); err != nil {
			return fmt.Errorf("remove the finalizers of %s: %w", object.GetName(), err)
		}
	}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := api.Delete(ctx, object); err != nil {
		return fmt.Errorf("delete %s: %w", object.GetName(), err)
	}
	return nil
}
