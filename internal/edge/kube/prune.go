package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes a child, and lets the garbage collector delete what belongs to it. It reads the child first, and does nothing if the owner is not
// its controller any more, or if the child is being deleted or gone.
func (c Children) Delete(ctx context.Context, child Child) error {
	var changed error
	for range applyTries {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(child.Kind)
		if err := c.Client.Get(ctx, child.Key, found); err != nil {
			return failed(child, client.IgnoreNotFound(err))
		}
		controller := metav1.GetControllerOf(found)
		if found.DeletionTimestamp != nil || controller == nil || controller.UID != c.Owner.Reference.UID { // mutant: prune-takes-from-others
			return nil
		}
		// The preconditions make the request fail if the object is no longer the one that was checked.
		err := c.Client.Delete(ctx, found, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion}) // mutant: prune-without-preconditions
		if !conflicted(err) {
			return failed(child, client.IgnoreNotFound(err))
		}
		changed = err
	}
	return failed(child, fmt.Errorf("other clients keep changing it: %w", changed))
}

func failed(child Child, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", child.Kind.Kind, child.Key, err)
}
