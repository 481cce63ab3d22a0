package einmal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Apply brings a child object to the given whole desired state by server-side apply, and reads the result back into
// it. The child gets the handled object as its controller (see NotController), and its namespace if it names none. It gets
// labels of the handled object only with CopyLabels and NestedLabels. What an earlier Apply set and this one does not is
// removed; fields of others stay.
//
// Apply creates a child only after it has read the handled object from the API server. If that object is gone, Apply creates nothing, and returns an
// error that counts as RequeueAfter: the operator learns of the deletion a moment later, and does not call the handler again.
//
// If the operator caches the kind of the child whole, as Owns does, and the cache shows the child as the last Apply of the same desired state in this
// process left it, Apply sends no request.
//
// Apply is refused, with an error that names the remedy, when an object of that name exists without our owner reference
// (unless Adopt is given), and when the garbage collector would take the owner for missing: a child in another
// namespace, or a cluster-wide child of a namespaced owner.
//
// The annotation <identity>/applied-for of the child names the handled object, with its kind and uid. Objects that are restored from a backup have new
// uids and no owner references. If the annotation <identity>/former-uid of the handled object has the uid that the child names, and the child has no
// controller, Apply takes it back: the child gets the owner reference. Without that annotation, the error is a command that sets it.
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
	return applier{client: c.Client, identity: "einmaltest", kind: gvk, owner: body}, err
}

// CheckOwner returns an error if an existing object does not belong to the handled object, so that Apply without Adopt would not change it. The error is that
// of Apply, and names the remedy. It returns nil for a child, and for an object that Apply would take back. Use it in a handler that reads an object and
// decides by it before it applies it. CheckOwner looks at the object as it is given, which must have its metadata.
func (c *Change[T]) CheckOwner(existing client.Object) error {
	made := c.apply
	if !c.driven {
		var err error
		if made, err = c.ownApplier(); err != nil {
			return err
		}
	}
	gvk, err := made.kindOf("check the owner of", existing)
	if err != nil {
		return err
	}
	if err := made.children(true).Check(existing); err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, strings.TrimPrefix(client.ObjectKeyFromObject(existing).String(), "/"), err)
	}
	return nil
}

// goneDelay is when a handler is called again whose object is gone, if the operator has not learned of the deletion until then.
const goneDelay = time.Second

// applier applies children of one object.
type applier struct {
	client client.Client
	// verify is true if the owner is an object of the API server.
	verify bool
	// identity is that of the operator.
	identity string
	kind     schema.GroupVersionKind
	owner    object.Body
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
	gvk, err := a.kindOf("apply", child)
	if err != nil {
		return err
	}
	child.GetObjectKind().SetGroupVersionKind(gvk)
	if free, is := child.(*unstructured.Unstructured); is {
		if free.Object, err = object.Plain(free.Object); err != nil {
			return &invoke.ProgrammingError{Err: fmt.Errorf("apply %s %s: %w", gvk.Kind, child.GetName(), err)}
		}
	}
	desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", gvk.Kind, child.GetName(), err)
	}
	if err := settings.labels.checkNested(gvk.Kind, desired); err != nil {
		return &invoke.ProgrammingError{Err: fmt.Errorf("apply %s %s: %w", gvk.Kind, child.GetName(), err)}
	}
	labels := settings.labels.of(a.owner)
	settle, settled := a.settled(ctx, child, settings, labels)
	if settled {
		return nil
	}
	children := a.children(!settings.shared)
	children.Labels, children.Adopt, children.Shared, children.VerifyOwner = labels, settings.adopt, settings.shared, a.verify
	applied, err := children.Apply(ctx, desired)
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

// kindOf returns the kind of a child.
func (a applier) kindOf(call string, child client.Object) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(child, a.client.Scheme())
	if err != nil {
		return gvk, &invoke.ProgrammingError{Err: fmt.Errorf("%s %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", call, child, err)}
	}
	return gvk, nil
}

// settled reports whether the child is as an earlier Apply has left it, and has then read it. Otherwise settle remembers the result of this Apply.
func (a applier) settled(ctx context.Context, child client.Object, settings applySettings, labels kube.Labels) (settle func(), settled bool) {
	wish, known := kube.WishOf(child, a.reference(!settings.shared), settings.adopt, labels)
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

// children returns what applies and deletes the children that the owner controls, or owns only.
func (a applier) children(controller bool) kube.Children {
	return kube.Children{
		Client: a.client, Manager: applyManager(a.identity), Identity: a.identity, Owner: a.reference(controller),
		FormerUID: object.Text(a.owner, "metadata", "annotations", object.FormerUIDAnnotation(a.identity)),
	}
}

// reference returns the owner of the children, as their controller or not.
func (a applier) reference(controller bool) kube.Owner {
	block := true
	return kube.Owner{
		Namespace: object.Text(a.owner, "metadata", "namespace"),
		Reference: metav1.OwnerReference{
			APIVersion: a.kind.GroupVersion().String(), Kind: a.kind.Kind,
			Name:       object.Text(a.owner, "metadata", "name"),
			UID:        types.UID(object.Text(a.owner, "metadata", "uid")),
			Controller: &controller, BlockOwnerDeletion: &block,
		},
	}
}

type applySettings struct {
	adopt, shared bool
	labels        labelSettings
}

// Adopt lets Apply take over an object that exists without a reference to the owner. Without it, Apply returns an error for such an object.
func Adopt() ApplyOption {
	return option{name: "Adopt", apply: func(settings *applySettings) error {
		settings.adopt = true
		return nil
	}}
}

// NotController makes the handled object an owner of the child that is not its controller. A child can have several owners, of which at most one
// is its controller. The garbage collector deletes the child when its last owner is gone.
//
// Apply then keeps the references to other owners, and is repeated if another client changes the child meanwhile. If several objects share a child,
// give NotController to each Apply of it, and Adopt to those that can find it existing: an Apply without NotController removes the references
// to other owners that the operator has set. Such a child does not get the annotation that names its owner. Owns looks for controllers only, so use Watches for such children.
func NotController() ApplyOption {
	return option{name: "NotController", apply: func(settings *applySettings) error {
		settings.shared = true
		return nil
	}}
}

// takeApply returns the settings of an Apply.
func takeApply(options []ApplyOption) (applySettings, error) {
	var settings applySettings
	known, err := optionsOf(options)
	for _, one := range known {
		err = errors.Join(err, one.apply(&settings))
	}
	return settings, errors.Join(err, settings.labels.check())
}

// childIndex holds the children of each controller.
type childIndex = Lookup[types.UID, types.NamespacedName]

// Prunes is Owns, and lets the handler delete children of type C that are no longer wanted: see Change.Prune. It declares the permissions
// for that, get and delete. C cannot be PersistentVolumeClaim, because the data is deleted with a claim.
func Prunes[C any, P interface {
	*C
	client.Object
}](options ...KindOption) ReconcileOption {
	return relation(relatedKind{option: prunesOption, goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) }}, options)
}

// Prune deletes the children of one kind that are no longer wanted: all objects of that kind whose controller is the handled object, except
// those with the given names. So give the names of the children that other handlers apply, too. Kind is an empty object, such as
// &corev1.Service{}. Without names, all children of the kind are deleted. If the handled object is cluster-scoped, each name has its
// namespace: "shop/web". The garbage collector then deletes what the deleted child owns.
//
// A handler of the kind needs the option Prunes for the kind of the children. Prune finds them in the cache of the operator. A child that is not
// there yet triggers the handler as soon as it is, and is deleted then. If others change a child meanwhile, Prune looks at it again: it does not
// delete a child that has got another controller.
func (c *Change[T]) Prune(ctx context.Context, kind client.Object, wanted ...string) error {
	if c.driven {
		return c.apply.prune(ctx, kind, wanted)
	}
	made, err := c.ownApplier()
	if err != nil {
		return err
	}
	return made.prune(ctx, kind, wanted)
}

// prune deletes the children of a kind without those that are wanted.
func (a applier) prune(ctx context.Context, kind client.Object, wanted []string) error {
	gvk, err := a.kindOf("prune", kind)
	if err != nil {
		return err
	}
	all, err := a.childrenOf(ctx, gvk)
	if err != nil {
		return err
	}
	namespace := object.Text(a.owner, "metadata", "namespace")
	children := a.children(true)
	var failed []error
	for _, key := range all {
		name := key.Name
		if namespace == "" && key.Namespace != "" {
			name = key.String()
		}
		if !slices.Contains(wanted, name) {
			failed = append(failed, children.Delete(ctx, kube.Child{Kind: gvk, Key: key}))
		}
	}
	return errors.Join(failed...)
}

// childrenOf returns the children of a kind that the owner controls. In a handler that a test calls, the API server lists them.
func (a applier) childrenOf(ctx context.Context, gvk schema.GroupVersionKind) ([]types.NamespacedName, error) {
	uid := types.UID(object.Text(a.owner, "metadata", "uid"))
	if a.pruned != nil {
		index := a.pruned(gvk)
		if index == nil {
			return nil, &invoke.ProgrammingError{Err: fmt.Errorf("prune %s: no handler of %s has an option for that; add einmal.Prunes of the Go type of %s to this one",
				gvk.Kind, a.kind.Kind, gvk.Kind)}
		}
		return index.Get(uid), nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := a.client.List(ctx, list, client.InNamespace(object.Text(a.owner, "metadata", "namespace"))); err != nil {
		return nil, fmt.Errorf("prune %s: %w", gvk.Kind, err)
	}
	var all []types.NamespacedName
	for i := range list.Items {
		if controller := metav1.GetControllerOf(&list.Items[i]); controller != nil && controller.UID == uid {
			all = append(all, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return all, nil
}

// pruned returns the index of the children of a kind, or nil if no handler has the option Prunes for it.
func (k *Kind[T]) pruned(gvk schema.GroupVersionKind) *childIndex {
	for _, one := range k.declared.related {
		if known, err := k.op.relatedGVK(one); err == nil && known.GroupKind() == gvk.GroupKind() && one.children != nil {
			return one.children
		}
	}
	return nil
}

// checkPruned returns an error if the kind may not be pruned.
func (r relatedKind) checkPruned(gvk schema.GroupVersionKind) error {
	if r.children != nil && gvk.Group == "" && gvk.Kind == "PersistentVolumeClaim" {
		return errors.New("option Prunes: the data in a volume is deleted with its PersistentVolumeClaim: use Owns, and delete claims with Client.Delete where that is wanted")
	}
	return nil
}

// childIndexes returns the indexes of all options Prunes, for kinds whose form in the cache is known.
func (op *Operator) childIndexes(forms cachedForms) []declaration.Index {
	var all []declaration.Index
	for _, kind := range op.everyKind() {
		for _, one := range kind.related {
			if gvk, _ := op.relatedGVK(one); one.children != nil { // Operator.watched has checked it.
				all = append(all, one.indexOf(kind.kind.GVK.Kind, declaration.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}))
			}
		}
	}
	return all
}

// indexOf returns the index by which Prune finds children.
func (r relatedKind) indexOf(of string, watched declaration.Watched) declaration.Index {
	return declaration.Index{
		Watched: watched, Body: bodyOf(watched.GVK), Remove: r.children.remove, Size: r.children.size,
		// A slash keeps the name apart from those of other indexes.
		Declaration: handler.Declaration{ID: of + "/" + r.handler, Verb: declaration.Indexing},
		Compute: func(cached client.Object) (func(), error) {
			entries := map[types.UID]types.NamespacedName{}
			if controller := metav1.GetControllerOf(cached); controller != nil {
				entries[controller.UID] = client.ObjectKeyFromObject(cached)
			}
			return func() { r.children.enter(client.ObjectKeyFromObject(cached), entries) }, nil
		},
	}
}
