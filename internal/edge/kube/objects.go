// Package kube touches the API server: it reads objects live, sends patches, and finds out what a kind can do.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// ErrGone tells that the object does not exist any more. It is no failure.
var ErrGone = errors.New("the object does not exist any more")

// ErrConflict tells that the object is no longer as the patch expects it, or that what the patch writes is refused as
// invalid: the API server answers both alike. A live read tells them apart.
var ErrConflict = errors.New("the object has changed meanwhile, or what was written is not valid")

// Objects reads and patches the objects of one kind, never through a cache.
type Objects struct {
	Client client.Client
	Kind   schema.GroupVersionKind
	// Owner is the field manager that writes appear under.
	Owner string
}

// Get reads the object live. ErrGone when there is none. A 404 that does not name the object is another failure.
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

// Patch sends one JSON Patch to the object or, with subresource, to that, and returns the object as it is then.
// ErrGone and ErrConflict are told apart from other failures.
func (o Objects) Patch(ctx context.Context, key types.NamespacedName, subresource string, operations []patch.Operation) (object.Body, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the patch of %s %s: %w", o.Kind.Kind, key, err)
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
	case apierrors.IsNotFound(err):
		return nil, o.notFound(ctx, key, err) // mutant: 404-not-confirmed
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return nil, fmt.Errorf("patch %s %s: %w: %w", o.Kind.Kind, key, ErrConflict, err)
	default:
		return nil, fmt.Errorf("patch %s %s: %w", o.Kind.Kind, key, err)
	}
}

// notFound explains a write that was answered with 404: the object is gone, or it exists and a subresource or the API version is not
// served. Only a live read tells them apart.
func (o Objects) notFound(ctx context.Context, key types.NamespacedName, refused error) error {
	_, err := o.Get(ctx, key)
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		return fmt.Errorf("patch %s %s: %w; then %w", o.Kind.Kind, key, refused, err)
	}
	return fmt.Errorf("patch %s %s: the object exists, but the API server does not find what is written: %w", o.Kind.Kind, key, refused)
}

// missing reports whether an answer says that the object of this name does not exist.
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

// Refusal is the API server's own sentence on why it refused a request, for people.
func Refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return strings.TrimSpace(status.Status().Message)
	}
	return err.Error()
}

// Refused tells that the API server will not write this content, now or later: repeating it is no use. A missing right is
// no refusal of the content: somebody may grant it. Admission webhooks deny with the same code as missing rights.
func Refused(err error) bool {
	return Denied(err) || errors.Is(err, ErrConflict) || apierrors.IsBadRequest(err) || TooLarge(err)
}

// TooLarge reports whether the API server refused a write because the object would be too large: the request, its annotations
// (256 KiB), or the whole object in etcd, which the API server answers with an internal error.
func TooLarge(err error) bool {
	var refused apierrors.APIStatus
	if err == nil || !errors.As(err, &refused) {
		return false
	}
	status := refused.Status()
	if apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(status.Message, "etcdserver: request is too large") {
		return true
	}
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseType(field.ErrorTypeTooLong) && cause.Field == "metadata.annotations"
	})
}

// Denied tells that an admission webhook or policy has said no, which it may see otherwise another time.
func Denied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(Refusal(err), "denied the request")
}

// Older tells whether the first of two resource versions of one resource is older. Versions that cannot be compared
// are old.
func Older(version, than string) bool {
	if than == "" || version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
