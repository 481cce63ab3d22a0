// Package kube accesses the API server: it reads live objects, sends patches, and describes kinds.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// ErrGone means that the object does not exist any more. That is not a failure.
var ErrGone = errors.New("the object no longer exists")

// ErrConflict means that the object is not in the state that the patch expects, or that the patched object is invalid. The API server
// responds the same way to both; a live read distinguishes them.
var ErrConflict = errors.New("the object has changed, or the patched object is invalid")

// Objects reads and patches the objects of one kind, always on the API server.
type Objects struct {
	Client client.Client
	Kind   schema.GroupVersionKind
	// Owner is the field manager of the writes.
	Owner string
}

// Get reads the live object. It returns ErrGone if there is none. A 404 that does not name the object is a different error.
func (o Objects) Get(ctx context.Context, key types.NamespacedName) (object.Body, error) {
	found := o.empty(key)
	if err := o.Client.Get(ctx, key, found); err != nil {
		if o.missing(err, key.Name) { // mutant: any-404-is-gone
			return nil, ErrGone
		}
		return nil, fmt.Errorf("read %s %s: %w", o.Kind.Kind, key, err)
	}
	return found.Object, nil
}

// Patch sends a JSON Patch to the object or to a subresource, and returns the resulting object. The error can be ErrGone or ErrConflict.
func (o Objects) Patch(ctx context.Context, key types.NamespacedName, subresource string, operations []patch.Operation) (object.Body, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s %s: %w", o.Kind.Kind, key, err)
	}
	target, request := o.empty(key), client.RawPatch(types.JSONPatchType, data)
	if subresource == "" {
		err = o.Client.Patch(ctx, target, request, client.FieldOwner(o.Owner))
	} else {
		options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: o.Owner}}
		err = o.Client.SubResource(subresource).Patch(ctx, target, request, options)
	}
	switch {
	case err == nil:
		return target.Object, nil
	case Denied(err): // With any status code: a 404 or 409 of a webhook says nothing of the object.
		return nil, fmt.Errorf("patch %s %s: %w", o.Kind.Kind, key, err)
	case apierrors.IsNotFound(err):
		return nil, o.notFound(ctx, key, err) // mutant: 404-not-confirmed
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return nil, fmt.Errorf("patch %s %s: %w: %w", o.Kind.Kind, key, ErrConflict, err)
	default:
		return nil, fmt.Errorf("patch %s %s: %w", o.Kind.Kind, key, err)
	}
}

// notFound explains a 404 response to a write: either the object is gone, or a subresource or the API version is not served. A live read
// distinguishes them.
func (o Objects) notFound(ctx context.Context, key types.NamespacedName, refused error) error {
	_, err := o.Get(ctx, key)
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		return fmt.Errorf("patch %s %s: %w; then %w", o.Kind.Kind, key, refused, err)
	}
	return fmt.Errorf("patch %s %s: the object exists, but the API server does not serve the subresource or the API version: %w", o.Kind.Kind, key, refused)
}

// missing reports whether an error says that the object of this name does not exist.
func (o Objects) missing(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || unserved(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details.Name == name && details.Group == o.Kind.Group
}

func (o Objects) empty(key types.NamespacedName) *unstructured.Unstructured {
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(o.Kind)
	target.SetNamespace(key.Namespace)
	target.SetName(key.Name)
	return target
}

// Older reports whether the first of two resource versions of one resource is older. Versions that cannot be compared count as older.
func Older(version, than string) bool {
	if than == "" || version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
