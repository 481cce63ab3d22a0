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

	"github.com/einmal-operators/einmal/internal/engine"
)

// Owns is an option of Reconcile: it runs again when an object of type C is created, changed or deleted whose controller is the
// handled object, as c.Apply makes it; so a child that somebody deletes or edits is put right. A deletion that the watch has
// missed counts too. Change.WokenBy and the log name the child. C is a type as For takes it; name it with GVK where its Go type
// does not tell.
//
// The handler's own writes of children wake it as well, so that it sees in the cache what has become of them: a run that
// changes nothing is the last one. A wake is to a handler what an edit of its object is: it ends a back-off and a failure for
// good, and the wait of RetryAfter(d, nil); a delay that was asked for with an error is waited for.
//
// Children are cached, and Client.Get reads them there. Of core Secrets only the metadata is cached, so Client.Get asks the API
// server; of other kinds too, if C is metav1.PartialObjectMetadata, named with GVK. A kind that is not served yet keeps nobody from anything: it
// is followed when it appears.
func Owns[C any, P interface {
	*C
	client.Object
}](options ...Option) Option {
	return relation(relatedKind{
		option: "Owns", goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) },
	}, options)
}

// Watches is an option of Reconcile: it runs again for the handled objects that the function lists, when an object of type C is
// created, changed or deleted. The function is given the object before and after a change, one after the other, and tells by
// namespace and name whom it concerns; a name without a namespace is one in the namespace of the object. It looks at the object,
// and maybe at an Index, and must not wait for anything. A panic is logged, and wakes nobody.
//
// All else is as with Owns, but that C is cached in full, Secrets too: with metav1.PartialObjectMetadata, named with GVK, only
// the metadata is.
func Watches[C any, P interface {
	*C
	client.Object
}](concerns func(*C) []types.NamespacedName, options ...Option) Option {
	watched := relatedKind{option: "Watches", goType: reflect.TypeFor[C](), empty: func() client.Object { return P(new(C)) }}
	if concerns != nil {
		watched.names = func(of client.Object) []types.NamespacedName { return concerns(typed[C](of)) }
	}
	return relation(watched, options)
}

// Related is an object that has woken a Reconcile.
type Related struct {
	// Kind is its kind, without the group; Namespace is empty for cluster-wide ones.
	Kind, Namespace, Name string
	// Event is what has happened to it last: EventListed, EventAdded, EventModified or EventDeleted.
	Event Reason
}

// String is such as: ConfigMap default/one deleted.
func (r Related) String() string {
	return strings.TrimSpace(r.Kind+" "+strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")) + " " + string(r.Event)
}

func relatedObjects(wakers []engine.Waker) []Related {
	var all []Related
	for _, by := range wakers {
		all = append(all, Related{Kind: by.Kind, Namespace: by.Namespace, Name: by.Name, Event: Reason(by.Event)})
	}
	return all
}

// relatedKind is a kind that is watched for the sake of another, as it was declared.
type relatedKind struct {
	option, handler string
	goType          reflect.Type
	named           schema.GroupVersionKind
	empty           func() client.Object
	// names lists whom an object of the Go type concerns; nil for its controller.
	names func(client.Object) []types.NamespacedName
}

func relation(of relatedKind, options []Option) Option {
	return Option{name: of.option, handler: func(settings *handlerSettings) error {
		var named kindSettings
		for _, option := range options {
			if option.kind == nil {
				return option.misplaced(of.option)
			}
			if err := option.kind(&named); err != nil {
				return err
			}
		}
		if of.option == "Watches" && of.names == nil {
			return errors.New("option Watches has no function: tell whom an object concerns, or use Owns")
		}
		of.named = named.gvk
		settings.related = append(settings.related, of)
		return nil
	}}
}

func (d *declaredKind) relate(handler string, to []relatedKind) {
	for _, one := range to {
		one.handler = handler
		d.related = append(d.related, one)
	}
}

// gvk is the kind of a related object.
func (op *Operator) relatedGVK(of relatedKind) (schema.GroupVersionKind, error) {
	example := of.empty()
	_, isMetadata := example.(*metav1.PartialObjectMetadata)
	_, isResource := example.(nameless)
	switch {
	case isMetadata && of.named.Empty():
		return of.named, errors.New("metadata alone does not tell of which kind: name it with einmal.GVK")
	case isMetadata:
		return of.named, nil
	case isResource && of.named.Empty(): // It is declared elsewhere.
		if known, _, err := op.scheme.ObjectKinds(example); err == nil {
			return known[0], nil
		}
	}
	return op.kindOf(example, of.named)
}

// shown gives an object in the Go type in which the kind was declared; it is the receiver's own.
func (r relatedKind) shown(cached client.Object) client.Object {
	if !partial(cached) && r.goType == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		metadata := meta.AsPartialObjectMetadata(cached).DeepCopy()
		metadata.SetGroupVersionKind(r.named)
		return metadata
	}
	own, _ := cached.DeepCopyObject().(client.Object)
	return own
}

// cachedForms are the kinds that are cached, each in one form.
type cachedForms map[schema.GroupKind]cachedForm

type cachedForm struct {
	gvk   schema.GroupVersionKind
	empty func() client.Object
	by    string
}

// add notes how a kind is cached. Two forms, or two versions, would be two caches; but who needs the metadata takes it from
// whatever form there is.
func (f cachedForms) add(gvk schema.GroupVersionKind, by string, empty func() client.Object) error {
	known, has := f[gvk.GroupKind()]
	if !has || known.gvk == gvk && partial(known.empty()) {
		f[gvk.GroupKind()] = cachedForm{gvk: gvk, empty: empty, by: by}
		return nil
	}
	if known.gvk == gvk && (partial(empty()) || reflect.TypeOf(known.empty()) == reflect.TypeOf(empty())) {
		return nil
	}
	return fmt.Errorf("%s would cache %s as %T of %s, and %s caches it as %T of %s: a kind is cached once, so use one type and version for both",
		by, gvk.Kind, empty(), gvk.GroupVersion(), known.by, known.empty(), known.gvk.GroupVersion())
}

func partial(example client.Object) bool {
	_, is := example.(*metav1.PartialObjectMetadata)
	return is
}

// watching is what is watched beside handled kinds.
type watching struct {
	relations  []engine.Relation
	indexes    []engine.Index
	selections []engine.Selection
}

// watched is what wakes handlers and what is indexed, each in the form in which it is cached, and all that is wrong with it.
func (op *Operator) watched() (watching, error) {
	var found []error
	forms := cachedForms{}
	for _, declared := range op.kinds {
		_ = forms.add(declared.kind.GVK, "For", declared.kind.New) // Handled kinds are checked elsewhere.
	}
	op.eachRelated(func(where string, one relatedKind) {
		gvk, err := op.relatedGVK(one)
		if err == nil {
			err = forms.add(gvk, "option "+one.option, one.formOf(gvk))
		}
		if err != nil {
			found = append(found, fmt.Errorf("%s of %s: %w", where, one.goType, err))
		}
	})
	if len(found) > 0 {
		return watching{}, errors.Join(found...)
	}
	var all watching
	for _, declared := range op.kinds {
		for _, one := range declared.related {
			gvk, _ := op.relatedGVK(one) // It was asked above.
			watched := engine.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}
			all.relations = append(all.relations, one.relationOf(declared.kind.GVK, watched))
		}
	}
	for _, declared := range op.indexes {
		gvk, _ := op.relatedGVK(declared.relatedKind) // It was asked above.
		all.indexes = append(all.indexes, declared.at(gvk, forms[gvk.GroupKind()].empty))
	}
	for _, declared := range op.selected {
		all.selections = append(all.selections, declared.selection(op, forms))
	}
	return all, nil
}

// eachRelated calls a function for each kind that is watched for the sake of others, and says where it is declared.
func (op *Operator) eachRelated(do func(string, relatedKind)) {
	for _, declared := range op.everyKind() {
		for _, one := range declared.related {
			do(fmt.Sprintf("handler %q of %s: option %s", one.handler, declared.kind.GVK.Kind, one.option), one)
		}
	}
	for _, declared := range op.indexes {
		do(fmt.Sprintf("index %q", declared.index.ID), declared.relatedKind)
	}
}

// relationOf wakes the handler of a kind by what is watched.
func (r relatedKind) relationOf(of schema.GroupVersionKind, watched engine.Watched) engine.Relation {
	relation := engine.Relation{Watched: watched, Of: of, Handler: r.handler}
	if r.names != nil {
		relation.Names = func(cached client.Object) []types.NamespacedName { return r.names(r.shown(cached)) }
	}
	return relation
}

// formOf makes empty objects of the form in which the kind is to be cached: of Secrets that are only owned, the metadata.
func (r relatedKind) formOf(gvk schema.GroupVersionKind) func() client.Object {
	return func() client.Object {
		fresh := r.empty()
		if r.option == "Owns" && (engine.Kind{GVK: gvk}).Secret() {
			fresh = &metav1.PartialObjectMetadata{}
		}
		switch fresh.(type) {
		case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
			fresh.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return fresh
	}
}

// allowRelated adds what it takes to watch related kinds, and to read them.
func (op *Operator) allowRelated(rights *engine.Rights, definitions map[schema.GroupKind]resource) {
	allowed := map[schema.GroupKind]bool{}
	for _, declared := range op.kinds {
		allowed[declared.kind.GVK.GroupKind()] = true
	}
	op.eachRelated(func(_ string, one relatedKind) {
		gvk, err := op.relatedGVK(one)
		if err != nil || allowed[gvk.GroupKind()] {
			return // What is wrong is a registration mistake.
		}
		allowed[gvk.GroupKind()] = true
		known, found := definitions[gvk.GroupKind()]
		if !found {
			known = guess(gvk, one.goType)
		}
		rights.Allow(known.where(), rule(gvk.Group, known.plural, "get", "list", "watch"))
	})
}
