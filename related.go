package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/rbac"
)

// The names of options that act differently.
const (
	ownsOption   = "Owns"
	prunesOption = "Prunes"
)

// Owns triggers a Reconcile when an object of type C is created, changed or deleted whose controller is the handled
// object. Change.Apply sets that owner reference. So a child that is deleted or edited is repaired. Deletions that the
// watch missed count too. Change.TriggeredBy and the log name the child. C is a type as for For; add the option GVK if
// its Go type does not say its kind.
//
// The handler's own writes of children trigger it as well, so that it sees the result in the cache. A run that changes
// nothing is the last one. A trigger acts like an edit of the handled object: it ends a backoff, a final failure, and
// the wait of RequeueAfter. It does not end the wait of RetryAfter with an error.
//
// Children are cached, and Client.Get reads them from the cache. For core Secrets only the metadata is cached, so
// Client.Get reads them from the API server. To cache only the metadata of another kind, use
// metav1.PartialObjectMetadata for C, with the option GVK. A kind that is not served yet blocks nothing: its watch
// starts when it appears.
func Owns[C any, P interface {
	*C
	client.Object
}](options ...KindOption) ReconcileOption {
	return relation(relatedKind{
		option: ownsOption, goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) },
	}, options)
}

// Watches triggers a Reconcile for the handled objects that the function returns, when an object of type C is created,
// changed or deleted. The function is called with the object before the change, and with the object after it. It
// returns namespaces and names; an empty namespace means the namespace of the object of type C. The function can use an
// Index, and must not block. A panic is logged and triggers nothing.
//
// Everything else is as for Owns, except that whole objects are cached, also of Secrets. To cache only the metadata,
// use metav1.PartialObjectMetadata for C, with the option GVK.
func Watches[C any, P interface {
	*C
	client.Object
}](concerns func(*C) []types.NamespacedName, options ...KindOption) ReconcileOption {
	watched := relatedKind{option: "Watches", goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) }}
	if concerns != nil {
		watched.names = func(of client.Object) []types.NamespacedName { return concerns(typed[C](of)) }
	}
	return relation(watched, options)
}

// Related is an object that has triggered a Reconcile.
type Related struct {
	// Kind is its kind, without the group. Namespace is empty for cluster-scoped kinds.
	Kind, Namespace, Name string
	// Event is what happened to it last: WatchListed, WatchAdded, WatchModified or WatchDeleted.
	Event Reason
}

// String returns a text such as "ConfigMap default/one deleted".
func (r Related) String() string {
	return strings.TrimSpace(r.Kind+" "+strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")) + " " + string(r.Event)
}

func relatedObjects(triggers []objects.Trigger) []Related {
	var all []Related
	for _, by := range triggers {
		all = append(all, Related{Kind: by.Kind, Namespace: by.Namespace, Name: by.Name, Event: Reason(by.Event)})
	}
	return all
}

// relatedKind is a kind of Owns, Watches or Index, as it was declared.
type relatedKind struct {
	option, handler string
	goType          reflect.Type
	named           schema.GroupVersionKind
	empty           func() client.Object
	// names returns the handled objects that an object triggers; nil means its controller.
	names func(client.Object) []types.NamespacedName
	// children is nil except for Prunes.
	children *childIndex
}

func relation(of relatedKind, options []KindOption) ReconcileOption {
	return option{name: of.option, handler: func(settings *handlerSettings) error {
		var named kindSettings
		known, err := optionsOf(options)
		if err != nil {
			return fmt.Errorf("option %s: %w", of.option, err)
		}
		for _, one := range known {
			if err := one.kind(&named); err != nil {
				return err
			}
		}
		if of.option == "Watches" && of.names == nil {
			return errors.New("option Watches: the function is nil: give one that returns the objects to trigger, or use Owns")
		}
		one := of // The option may be given to several handlers and operators, at the same time.
		one.named = named.gvk
		if one.option == prunesOption {
			one.children = &childIndex{byKey: map[types.UID]*bucket[types.NamespacedName]{}, byObject: map[types.NamespacedName][]types.UID{}}
		}
		settings.related = append(settings.related, one)
		if one.children == nil {
			return nil
		}
		return settings.permissions.add(rbac.Request{Option: one.option, Object: one.example(), Verbs: []string{"get", "delete"}})
	}}
}

// example returns an object that says its kind, if the scheme does not.
func (r relatedKind) example() client.Object {
	example := r.empty()
	if !r.named.Empty() {
		example.GetObjectKind().SetGroupVersionKind(r.named)
	}
	return example
}

func (d *declaredKind) relate(handler string, to []relatedKind) {
	for _, one := range to {
		one.handler = handler
		d.related = append(d.related, one)
	}
}

// relatedGVK returns the group, version and kind of a related kind.
func (op *Operator) relatedGVK(of relatedKind) (schema.GroupVersionKind, error) {
	example := of.empty()
	_, isMetadata := example.(*metav1.PartialObjectMetadata)
	_, isResource := example.(nameless)
	switch {
	case isMetadata && of.named.Empty():
		return of.named, errors.New("PartialObjectMetadata does not say its kind: name it with einmal.GVK")
	case isMetadata:
		return of.named, nil
	case isResource && of.named.Empty(): // For may have declared its name.
		if known, _, err := op.scheme.ObjectKinds(example); err == nil {
			return known[0], nil
		}
	}
	return op.kindOf(example, of.named)
}

// shown returns a copy of a cached object in the Go type of the declaration.
func (r relatedKind) shown(cached client.Object) client.Object {
	if !partial(cached) && r.goType == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		metadata := meta.AsPartialObjectMetadata(cached).DeepCopy()
		metadata.SetGroupVersionKind(r.named)
		return metadata
	}
	own, _ := cached.DeepCopyObject().(client.Object)
	return own
}

// cachedForms holds the form in which each kind is cached: its version and Go type.
type cachedForms map[schema.GroupKind]cachedForm

type cachedForm struct {
	gvk   schema.GroupVersionKind
	empty func() client.Object
	by    string
}

// add sets how a kind is cached. Two Go types or two versions would need two caches, which is an error. An exception is
// metadata: it can be taken from any type.
func (f cachedForms) add(gvk schema.GroupVersionKind, by string, empty func() client.Object) error {
	known, has := f[gvk.GroupKind()]
	if !has || known.gvk == gvk && partial(known.empty()) {
		f[gvk.GroupKind()] = cachedForm{gvk: gvk, empty: empty, by: by}
		return nil
	}
	if known.gvk == gvk && (partial(empty()) || reflect.TypeOf(known.empty()) == reflect.TypeOf(empty())) {
		return nil
	}
	return fmt.Errorf("%s caches %s as %T of %s, but %s caches it as %T of %s: use the same type and version for both",
		by, gvk.Kind, empty(), gvk.GroupVersion(), known.by, known.empty(), known.gvk.GroupVersion())
}

func partial(example client.Object) bool {
	_, is := example.(*metav1.PartialObjectMetadata)
	return is
}

// watching is what is watched in addition to handled kinds.
type watching struct {
	relations  []declaration.Relation
	indexes    []declaration.Index
	selections []declaration.Selection
}

// watched returns what triggers handlers and what is indexed, with the form in which each kind is cached. The error
// joins all mistakes.
func (op *Operator) watched() (watching, error) {
	var found []error
	forms := cachedForms{}
	for _, kind := range op.kinds {
		_ = forms.add(kind.kind.GVK, "For", kind.kind.New) // Operator.check reports duplicates.
	}
	op.eachRelated(func(where string, one relatedKind) {
		gvk, err := op.relatedGVK(one)
		if err == nil {
			err = errors.Join(forms.add(gvk, "option "+one.option, one.formOf(gvk)), one.checkPruned(gvk))
		}
		if err != nil {
			found = append(found, fmt.Errorf("%s of %s: %w", where, one.goType, err))
		}
	})
	if len(found) > 0 {
		return watching{}, errors.Join(found...)
	}
	var all watching
	for _, kind := range op.kinds {
		for _, one := range kind.related {
			gvk, _ := op.relatedGVK(one) // Checked above.
			watched := declaration.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}
			all.relations = append(all.relations, one.relationOf(kind.kind.GVK, watched))
		}
	}
	all.indexes = op.childIndexes(forms)
	for _, one := range op.indexes {
		gvk, _ := op.relatedGVK(one.relatedKind) // Checked above.
		all.indexes = append(all.indexes, one.at(gvk, forms[gvk.GroupKind()].empty))
	}
	for _, one := range op.selected {
		all.selections = append(all.selections, one.selection(op, forms))
	}
	return all, nil
}

// eachRelated calls do for each kind of Owns, Watches and Index, with the place of its declaration.
func (op *Operator) eachRelated(do func(string, relatedKind)) {
	for _, kind := range op.everyKind() {
		for _, one := range kind.related {
			do(fmt.Sprintf("handler %q of %s: option %s", one.handler, kind.kind.GVK.Kind, one.option), one)
		}
	}
	for _, one := range op.indexes {
		do(fmt.Sprintf("index %q", one.index.ID), one.relatedKind)
	}
}

// relationOf returns the relation by which a watched kind triggers the handler.
func (r relatedKind) relationOf(of schema.GroupVersionKind, watched declaration.Watched) declaration.Relation {
	relation := declaration.Relation{Watched: watched, Of: of, Handler: r.handler}
	if r.names != nil {
		relation.Names = func(cached client.Object) []types.NamespacedName { return r.names(r.shown(cached)) }
	}
	return relation
}

// formOf returns a function that makes empty objects in the form to cache. For Secrets of Owns and Prunes, that is metadata only.
func (r relatedKind) formOf(gvk schema.GroupVersionKind) func() client.Object {
	return func() client.Object {
		fresh := r.empty()
		if (r.option == ownsOption || r.children != nil) && (declaration.Kind{GVK: gvk}).Secret() {
			fresh = &metav1.PartialObjectMetadata{}
		}
		switch fresh.(type) {
		case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
			fresh.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return fresh
	}
}
