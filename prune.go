package einmal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
)

// childIndex holds the children of each controller.
type childIndex = Lookup[types.UID, types.NamespacedName]

// Prunes is Owns, and lets the handler delete children of type C that are no longer wanted: see Change.Prune. It declares the permissions
// for that, get and delete. C cannot be PersistentVolumeClaim, because the data is deleted with a claim.
func Prunes[C any, P interface {
	*C
	client.Object
}](options ...KindOption) ReconcileOption {
	pruned := relatedKind{
		option: "Prunes", goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) },
		children: &childIndex{byKey: map[types.UID]*bucket[types.NamespacedName]{}, byObject: map[types.NamespacedName][]types.UID{}},
	}
	return relation(pruned, options)
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
	gvk, err := apiutil.GVKForObject(kind, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("prune %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", kind, err)
	}
	all, err := a.childrenOf(ctx, gvk)
	if err != nil {
		return err
	}
	namespace := object.Text(a.owner, "metadata", "namespace")
	children := kube.Children{Client: a.client, Manager: a.manager, Owner: a.reference(true)}
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
func (op *Operator) childIndexes(forms cachedForms) []engine.Index {
	var all []engine.Index
	for _, declared := range op.everyKind() {
		for _, one := range declared.related {
			if gvk, _ := op.relatedGVK(one); one.children != nil { // Operator.watched has checked it.
				all = append(all, one.indexOf(declared.kind.GVK.Kind, engine.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}))
			}
		}
	}
	return all
}

// indexOf returns the index by which Prune finds children.
func (r relatedKind) indexOf(of string, watched engine.Watched) engine.Index {
	return engine.Index{
		Watched: watched, Body: bodyOf(watched.GVK), Remove: r.children.remove, Size: r.children.size,
		// A slash keeps the name apart from those of other indexes.
		Declaration: handler.Declaration{ID: of + "/" + r.handler, Verb: engine.Indexing},
		Compute: func(cached client.Object) (func(), error) {
			entries := map[types.UID]types.NamespacedName{}
			if controller := metav1.GetControllerOf(cached); controller != nil {
				entries[controller.UID] = client.ObjectKeyFromObject(cached)
			}
			return func() { r.children.enter(client.ObjectKeyFromObject(cached), entries) }, nil
		},
	}
}
