package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Owner is the object that owns the children.
type Owner struct {
	Reference metav1.OwnerReference
	// Namespace is "" for a cluster-scoped owner.
	Namespace string
}

// Children applies the complete desired state of child objects.
type Children struct {
	Client  client.Client
	Manager string
	// Identity is that of the operator, after which annotations are named.
	Identity string
	Owner    Owner
	// FormerUID is the uid of an object that the owner continues, as a user says. It is "" if there is none.
	FormerUID string
	// Adopt also applies to any existing object without the owner's reference.
	Adopt bool
	// Shared keeps the references of an existing object to other owners.
	Shared bool
	// VerifyOwner makes Apply read the owner live before it creates or adopts a child. Without it, an owner that the cache still shows gets a
	// child after its deletion, or its reference gets into an object of another client, which the garbage collector then deletes.
	VerifyOwner bool
	// Labels are the labels of the owner that the child gets.
	Labels Labels
}

// Apply brings the child to the desired state by server-side apply and returns the resulting object. It adds the owner's reference, the
// owner's namespace if the child has none, those of Labels that the child does not have, and an annotation that names the owner. It returns ErrForeign if
// an object of that name exists and Check refuses it, and ErrGone if the child does not have the reference yet and VerifyOwner finds no owner. If the API
// server refuses the content, the error names the fields of an existing object that the request changes.
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
	return nil, fmt.Errorf("apply %s: other clients keep creating, changing or deleting it: %w", name, taken)
}

// applyTries is how often Apply tries if another client creates or changes the child first.
const applyTries = 3

// absent is a resource version that no object has. A request with it can create an object, but cannot change an existing one. The first
// revision of an etcd belongs to no object.
const absent = "1"

// applyOnce applies the child to the existing object or creates it. Again means that another client has just created it or, if the request depends on
// its owners, changed it.
func (c Children) applyOnce(ctx context.Context, child *unstructured.Unstructured) (applied object.Body, again bool, err error) {
	existing, err := c.existing(ctx, child)
	if err != nil {
		return nil, false, err
	}
	if existing == nil || !c.owns(existing) {
		if err := c.verifyOwner(ctx); err != nil {
			return nil, false, err
		}
	}
	if err := errors.Join(c.label(child, existing), c.mark(child)); err != nil {
		return nil, false, err
	}
	options := []client.ApplyOption{client.FieldOwner(c.Manager)}
	versioned := c.Shared || existing != nil && !c.owns(existing) && !c.Adopt
	child.SetOwnerReferences(c.owners(child, existing))
	if existing != nil {
		// The uid makes the request fail if the object is no longer the one that was checked.
		child.SetUID(existing.GetUID())
		options = append(options, client.ForceOwnership)
		if versioned { // So does the version if another owner was added meanwhile: its reference would be removed, or the child taken from it.
			child.SetResourceVersion(existing.GetResourceVersion()) // mutant: shared-owner-lost
		}
	} else {
		child.SetResourceVersion(absent) // mutant: apply-takes-over
	}
	err = c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(child), options...)
	if existing != nil {
		err = withChanges(err, existing.Object, child.Object)
	}
	return child.Object, (existing == nil || versioned) && conflicted(err), err
}

// owners returns the owner references of the child: those that it names, that of the owner, and of a shared child those that it has.
func (c Children) owners(child, existing *unstructured.Unstructured) []metav1.OwnerReference {
	of := func(uid types.UID) func(metav1.OwnerReference) bool {
		return func(reference metav1.OwnerReference) bool { return reference.UID == uid }
	}
	owners := append(slices.DeleteFunc(child.GetOwnerReferences(), of(c.Owner.Reference.UID)), c.Owner.Reference)
	if !c.Shared || existing == nil {
		return owners
	}
	for _, other := range existing.GetOwnerReferences() {
		if !slices.ContainsFunc(owners, of(other.UID)) {
			owners = append(owners, other)
		}
	}
	return owners
}

// place sets the namespace of the child, and rejects owners that the garbage collector would consider missing.
func (c Children) place(child *unstructured.Unstructured) error {
	if child.GetName() == "" {
		return errors.New("metadata.name is empty; derive it from the owner, so that every run finds the same object")
	}
	namespaced, err := c.Client.IsObjectNamespaced(child)
	if err != nil {
		return err
	}
	switch {
	case !namespaced && c.Owner.Namespace != "":
		return fmt.Errorf("object is cluster-scoped but its owner %s is in namespace %s: the garbage collector would delete it; create it through Client instead",
			c.Owner.Reference.Name, c.Owner.Namespace)
	case namespaced && child.GetNamespace() == "":
		child.SetNamespace(c.Owner.Namespace)
	case namespaced && c.Owner.Namespace != "" && child.GetNamespace() != c.Owner.Namespace:
		return fmt.Errorf("object is in namespace %s but its owner %s is in %s: the garbage collector would delete it; create it through Client instead",
			child.GetNamespace(), c.Owner.Reference.Name, c.Owner.Namespace)
	}
	if namespaced && child.GetNamespace() == "" {
		return errors.New("metadata.namespace is empty and the owner is cluster-scoped; set it")
	}
	return nil
}

// existing returns the live object with the child's name, if it may be changed.
func (c Children) existing(ctx context.Context, child *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(child.GroupVersionKind())
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: child.GetNamespace(), Name: child.GetName()}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // The absence of the object is not an error.
	case err != nil:
		return nil, err
	case found.GetDeletionTimestamp() != nil:
		return nil, errors.New("the existing object is being deleted; retry when it is gone")
	}
	if !c.Adopt {
		err = c.Check(found)
	}
	return found, err
}

// owns reports whether an object has the reference to the owner.
func (c Children) owns(child metav1.Object) bool {
	return slices.ContainsFunc(child.GetOwnerReferences(), func(reference metav1.OwnerReference) bool { return reference.UID == c.Owner.Reference.UID })
}

// verifyOwner returns ErrGone if the API server does not have the owner any more.
func (c Children) verifyOwner(ctx context.Context) error {
	if !c.VerifyOwner {
		return nil
	}
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion(c.Owner.Reference.APIVersion)
	owner.SetKind(c.Owner.Reference.Kind)
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: c.Owner.Namespace, Name: c.Owner.Reference.Name}, owner)
	switch {
	case apierrors.IsNotFound(err), err == nil && owner.GetUID() != c.Owner.Reference.UID:
		return ErrGone
	case err != nil:
		return fmt.Errorf("read the owner %s %s: %w", c.Owner.Reference.Kind, c.Owner.Reference.Name, err)
	}
	return nil
}

// withoutNulls copies a body without nulls. Go types write null for unset fields, and applying them would claim these fields.
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
