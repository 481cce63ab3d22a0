package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// ErrForeign tells that an object exists and belongs to somebody else.
var ErrForeign = errors.New("it exists and is not ours")

// Owner is the object that children belong to.
type Owner struct {
	Reference metav1.OwnerReference
	// Namespace is "" for a cluster-wide owner.
	Namespace string
	Labels    map[string]string
}

// Children applies the whole desired state of child objects.
type Children struct {
	Client  client.Client
	Manager string
	Owner   Owner
	// Adopt takes over an object that exists without the owner's reference.
	Adopt bool
}

// Apply brings the child to the desired state by server-side apply: with the owner's reference, in the owner's
// namespace if it names none, with the owner's labels where it has none of that name. It returns the child as it is
// then. ErrForeign when an object of that name exists without the owner's reference.
func (c Children) Apply(ctx context.Context, desired object.Body) (object.Body, error) {
	child := &unstructured.Unstructured{Object: object.Without(withoutNulls(desired), object.Path{"status"})}
	for _, owned := range []string{"managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(child.Object, "metadata", owned)
	}
	placed := c.place(child)
	name := strings.TrimSuffix(child.GetKind()+" "+child.GetNamespace()+"/"+child.GetName(), "/")
	if placed != nil {
		return nil, fmt.Errorf("apply %s: %w", name, placed)
	}
	c.label(child)
	child.SetOwnerReferences(append(child.GetOwnerReferences(), c.Owner.Reference))
	var taken error
	for range applyTries {
		applied, again, err := c.applyOnce(ctx, child.DeepCopy())
		switch {
		case err == nil:
			return applied, nil
		case !again:
			return nil, fmt.Errorf("apply %s: %w", name, err)
		}
		taken = err
	}
	return nil, fmt.Errorf("apply %s: other clients create and delete it at the same time: %w", name, taken)
}

// applyTries is how often Apply looks again after another client has created the child first.
const applyTries = 3

// absent is a resource version that no object has: a request with it creates an object, and changes none that exists. The first
// revision of an etcd belongs to no object.
const absent = "1"

// applyOnce applies the child to the object that exists, or creates it. Again: another client has created it meanwhile.
func (c Children) applyOnce(ctx context.Context, child *unstructured.Unstructured) (applied object.Body, again bool, err error) {
	existing, err := c.existing(ctx, child)
	if err != nil {
		return nil, false, err
	}
	options := []client.ApplyOption{client.FieldOwner(c.Manager)}
	if existing != nil {
		// The uid makes sure that it is the object we have looked at which is changed.
		child.SetUID(existing.GetUID())
		options = append(options, client.ForceOwnership)
	} else {
		child.SetResourceVersion(absent) // mutant: apply-takes-over
	}
	err = c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(child), options...)
	return child.Object, existing == nil && apierrors.IsConflict(err), err
}

// place gives the child a namespace, and refuses owners that the garbage collector would take for missing.
func (c Children) place(child *unstructured.Unstructured) error {
	if child.GetName() == "" {
		return errors.New("it has no name: name it after its owner, so that every run finds the same one")
	}
	namespaced, err := c.Client.IsObjectNamespaced(child)
	if err != nil {
		return err
	}
	switch {
	case !namespaced && c.Owner.Namespace != "":
		return fmt.Errorf("it is cluster-wide and its owner %s is in namespace %s: the garbage collector would delete it; create it through Client instead",
			c.Owner.Reference.Name, c.Owner.Namespace)
	case namespaced && child.GetNamespace() == "":
		child.SetNamespace(c.Owner.Namespace)
	case namespaced && c.Owner.Namespace != "" && child.GetNamespace() != c.Owner.Namespace:
		return fmt.Errorf("it is in namespace %s and its owner %s in %s: the garbage collector would delete it; create it through Client instead",
			child.GetNamespace(), c.Owner.Reference.Name, c.Owner.Namespace)
	}
	if namespaced && child.GetNamespace() == "" {
		return errors.New("it has no namespace and its owner is cluster-wide: set metadata.namespace")
	}
	return nil
}

// existing returns the live object of the child's name, if it may be changed.
func (c Children) existing(ctx context.Context, child *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(child.GroupVersionKind())
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: child.GetNamespace(), Name: child.GetName()}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // Nothing in the way is neither an object nor an error.
	case err != nil:
		return nil, err
	case found.GetDeletionTimestamp() != nil:
		return nil, errors.New("the one that exists is being deleted; it is tried again when it is gone")
	}
	for _, reference := range found.GetOwnerReferences() {
		if reference.UID == c.Owner.Reference.UID {
			return found, nil
		}
	}
	if !c.Adopt {
		return nil, fmt.Errorf("%w: it has no owner reference to %s %s; choose another name, delete it, or allow einmal.Adopt()",
			ErrForeign, c.Owner.Reference.Kind, c.Owner.Reference.Name)
	}
	return found, nil
}

func (c Children) label(child *unstructured.Unstructured) {
	labels := child.GetLabels()
	if labels == nil {
		labels = make(map[string]string, len(c.Owner.Labels))
	}
	for key, value := range c.Owner.Labels {
		if _, has := labels[key]; !has {
			labels[key] = value
		}
	}
	child.SetLabels(labels)
}

// withoutNulls copies a body without nulls: Go types write them for what is not set, and applied they would claim it.
func withoutNulls(body object.Body) object.Body {
	kept := make(object.Body, len(body))
	for key, value := range body {
		if value != nil {
			kept[key] = stripped(value)
		}
	}
	return kept
}

func stripped(value any) any {
	switch value := value.(type) {
	case object.Body:
		return withoutNulls(value)
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = stripped(item)
		}
		return items
	default:
		return value
	}
}
