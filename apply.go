package einmal

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Apply brings a child object to the given whole desired state by server-side apply, and reads the result back into
// it. The child gets the handled object as its controller (see NotController), its namespace if it names none, and its
// labels where it has none of the same name (see NestedLabels). What an earlier Apply set and this one does not is
// removed; fields of others stay.
//
// Apply creates a child only after it has read the handled object from the API server. If that object is gone, Apply creates nothing, and returns an
// error that counts as RequeueAfter: the operator learns of the deletion a moment later, and does not call the handler again.
//
// If the operator caches the kind of the child whole, as Owns does, and the cache shows the child as the last Apply of the same desired state in this
// process left it, Apply sends no request.
//
// It is refused, with an error that names the remedy, when an object of that name exists without our owner reference
// (unless Adopt is given), and when the garbage collector would take the owner for missing: a child in another
// namespace, or a cluster-wide child of a namespaced owner.
func (c *Change[T]) Apply(ctx context.Context, child client.Object, options ...ApplyOption) error {
	if c.driven {
		return c.apply.apply(ctx, child, options)
	}
	made, err := c.ownApplier()
	if err != nil {
		return err
	}
	return made.apply(ctx, child, options)
}

// ownApplier applies children for a test that calls the handler.
func (c *Change[T]) ownApplier() (applier, error) {
	owner, ok := any(c.Object).(client.Object)
	if c.Client == nil || !ok {
		return applier{}, errors.New("apply: this Change was made by a test; set its Client")
	}
	gvk, err := apiutil.GVKForObject(owner, c.Client.Scheme())
	if err != nil {
		return applier{}, fmt.Errorf("apply: owner %T: %w", owner, err)
	}
	body, err := bodyOf(gvk)(owner)
	return applier{client: c.Client, manager: "einmaltest/apply", kind: gvk, owner: body}, err
}

// goneDelay is when a handler is called again whose object is gone, if the operator has not learned of the deletion until then.
const goneDelay = time.Second

// applier applies children of one object.
type applier struct {
	client client.Client
	// verify is true if the owner is an object of the API server.
	verify  bool
	manager string
	kind    schema.GroupVersionKind
	owner   object.Body
	// cached is the client with the cache of the operator.
	cached client.Client
	// known returns what earlier calls have applied. It is nil if that is not remembered.
	known func() *kube.Applied
	// pruned returns the index of the children of a kind. It is nil in a handler that a test calls.
	pruned func(schema.GroupVersionKind) *childIndex
}

func (a applier) apply(ctx context.Context, child client.Object, options []ApplyOption) error {
	settings, err := takeApply(options)
	if err != nil {
		return &invoke.ProgrammingError{Err: fmt.Errorf("apply %T: %w", child, err)}
	}
	gvk, err := apiutil.GVKForObject(child, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("apply %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", child, err)
	}
	child.GetObjectKind().SetGroupVersionKind(gvk)
	desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", gvk.Kind, child.GetName(), err)
	}
	if err := settings.checkNested(gvk.Kind, desired); err != nil {
		return &invoke.ProgrammingError{Err: fmt.Errorf("apply %s %s: %w", gvk.Kind, child.GetName(), err)}
	}
	settle, settled := a.settled(ctx, child, settings)
	if settled {
		return nil
	}
	applied, err := kube.Children{
		Client: a.client, Manager: a.manager, Owner: a.reference(!settings.shared), Nested: settings.nested,
		Adopt: settings.adopt, Shared: settings.shared, VerifyOwner: a.verify,
	}.Apply(ctx, desired)
	if errors.Is(err, kube.ErrGone) {
		return fmt.Errorf("apply %s %s: the %s %s is gone: %w", gvk.Kind, child.GetName(), a.kind.Kind, object.Text(a.owner, "metadata", "name"), RequeueAfter(goneDelay))
	}
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied, child); err != nil {
		return fmt.Errorf("read back %s %s: %w", gvk.Kind, child.GetName(), err)
	}
	settle()
	return nil
}

// settled reports whether the child is as an earlier Apply has left it, and has then read it. Otherwise settle remembers the result of this Apply.
func (a applier) settled(ctx context.Context, child client.Object, settings applySettings) (settle func(), settled bool) {
	wish, known := kube.WishOf(child, a.reference(!settings.shared), settings.adopt, settings.nested)
	if a.known == nil || !known {
		return func() {}, false
	}
	named := kube.Child{Kind: child.GetObjectKind().GroupVersionKind(), Key: client.ObjectKeyFromObject(child)}
	if named.Key.Namespace == "" {
		named.Key.Namespace = object.Text(a.owner, "metadata", "namespace")
	}
	before := a.known()
	return func() { before.Keep(named, wish, child) }, before.Unchanged(ctx, a.cached, named, wish, child)
}

// reference returns the owner of the children, as their controller or not.
func (a applier) reference(controller bool) kube.Owner {
	block := true
	labels := make(map[string]string)
	for key, value := range object.Map(a.owner, "metadata", "labels") {
		if text, isText := value.(string); isText {
			labels[key] = text
		}
	}
	return kube.Owner{
		Namespace: object.Text(a.owner, "metadata", "namespace"),
		Labels:    labels,
		Reference: metav1.OwnerReference{
			APIVersion: a.kind.GroupVersion().String(), Kind: a.kind.Kind,
			Name:       object.Text(a.owner, "metadata", "name"),
			UID:        types.UID(object.Text(a.owner, "metadata", "uid")),
			Controller: &controller, BlockOwnerDeletion: &block,
		},
	}
}
