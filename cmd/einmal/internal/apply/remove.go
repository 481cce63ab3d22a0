package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

const removalPoll = 100 * time.Millisecond

// Remove deletes the objects in the given order, waits until they are gone and calls removed for each. It keeps an object
// that was deleted and re-created in the meantime. It continues after a failure and returns all failures joined.
func (a *Applier) Remove(ctx context.Context, objects []Applied, removed func(Applied)) error {
	var failures []error
	var deleted []Applied
	for _, one := range objects {
		background := metav1.DeletePropagationBackground
		err := a.resource(one).Delete(ctx, one.GetName(), metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &one.UID}, PropagationPolicy: &background,
		})
		switch {
		case err == nil:
			deleted = append(deleted, one)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // already gone, or re-created with another UID
		default:
			failures = append(failures, fmt.Errorf("delete %s: %w", one.Name(), err))
		}
	}
	for _, one := range deleted {
		if err := a.awaitRemoval(ctx, one); err != nil {
			failures = append(failures, err)
			continue
		}
		removed(one)
	}
	return errors.Join(failures...)
}

// awaitRemoval waits until an object is gone.
func (a *Applier) awaitRemoval(ctx context.Context, one Applied) error {
	var live *unstructured.Unstructured
	err := wait.PollUntilContextCancel(ctx, removalPoll, true, func(ctx context.Context) (bool, error) {
		got, err := a.resource(one).Get(ctx, one.GetName(), metav1.GetOptions{})
		if err == nil {
			live = got
		}
		return apierrors.IsNotFound(err) || err == nil && got.GetUID() != one.UID, nil
	})
	if err == nil {
		return nil
	}
	why := context.Cause(ctx).Error()
	if live != nil && len(live.GetFinalizers()) > 0 {
		why += "; remaining finalizers: " + strings.Join(live.GetFinalizers(), ", ")
	}
	return fmt.Errorf("wait until %s is deleted: %s", one.Name(), why)
}

func (a *Applier) resource(one Applied) dynamic.ResourceInterface {
	if namespace := one.GetNamespace(); namespace != "" {
		return a.client.Resource(one.Resource).Namespace(namespace)
	}
	return a.client.Resource(one.Resource)
}
