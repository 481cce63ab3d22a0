package einmal

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// Selector selects kinds from what the API server serves. Set exactly one of Name, Category and Everything. Group and
// Version narrow it down.
//
// Kinds that do not support list and watch are skipped. Kinds that do not support patch are skipped too, unless all
// handlers are OnEvent, Reconcile, Timer, or Daemon with WithoutFinalizer. In an operator with the option Namespaces,
// Category and Everything select namespaced kinds only.
type Selector struct {
	// Name is a kind, a plural, a singular or a short name, such as Deployment, deployments, deployment or deploy. It can have a
	// group, as in deployments.apps, and a version, as in deployments.v1.apps, or pods.v1 in the core group.
	//
	// If several kinds have the name, the one of the core group is selected. If none of them is in the core group, no kind is
	// selected, the log names all of them, and the operator is not ready until only one exists. To choose one, add its group.
	Name string
	// Category is a category of kinds, such as all. Kubernetes events are skipped, because handling them would cause more events.
	Category string
	// Everything selects all kinds except Kubernetes events.
	Everything bool
	// Group is an API group, such as apps, or core for that of Pods and Secrets. The default is any group.
	Group string
	// Version is an API version, such as v1. The default is the version of each kind that the API server prefers among those
	// that it serves. If that changes, the watch moves to the new version. Handlers do not run again for that.
	Version string
}

// ForEvery declares that the operator handles the objects of all kinds that the selector selects. Kinds can appear and
// disappear at run time, without a restart. All verbs work as with For. A handler reads the kind of its object from the
// object.
//
// If several ForEvery select a kind, it is served once, with the handlers of all of them. So handler ids must be unique
// among all ForEvery of the operator. A ForEvery skips a kind that has its own For, and a kind that an earlier ForEvery
// selects in another version. The log reports that.
//
// The selection is updated every five seconds, at almost no cost, and when a watch fails. An operator with a Name is
// not ready until such a kind exists; a Category or Everything may select none. If the server of an API group is down,
// kinds of other groups are not affected, and known kinds of that group are still handled.
//
// The operator's own ConfigMap, Secret and Lease are never handled. If the selector covers Secrets, StateNamespace is
// required: see For. Owns and Watches work for each kind. Objects of kinds that are not selected any more keep their
// finalizers and records. The command uninstall cleans up the kinds that are selected when it runs.
func ForEvery(op *Operator, of Selector) *Kind[unstructured.Unstructured] {
	chosen, err := selection.New(of.Name, of.Category, of.Everything, of.Group, of.Version)
	if err != nil {
		op.mistake(fmt.Errorf("ForEvery: %w", err))
	}
	k := freeKind(op, schema.GroupVersionKind{Kind: "ForEvery " + chosen.String()})
	k.every = &every[unstructured.Unstructured]{}
	op.selected = append(op.selected, &declaredSelection{declaredKind: k.declared, of: chosen, at: k.at})
	return k
}

// every holds the declarations of a ForEvery, which are repeated for each selected kind.
type every[T any] struct{ verbs []func(*Kind[T]) }

// declaredSelection is a selector as it was declared, with handlers for a kind without a name.
type declaredSelection struct {
	*declaredKind

	of selection.Selector
	at func(schema.GroupVersionKind) *declaredKind
}

// freeKind returns a kind whose objects have no Go type of their own.
func freeKind(op *Operator, gvk schema.GroupVersionKind) *Kind[unstructured.Unstructured] {
	k := &Kind[unstructured.Unstructured]{op: op, declared: &declaredKind{}}
	k.empty = func() client.Object {
		fresh := &unstructured.Unstructured{}
		fresh.SetGroupVersionKind(gvk)
		return fresh
	}
	k.take(gvk)
	return k
}

// at repeats the declarations of the ForEvery for one kind.
func (k *Kind[T]) at(gvk schema.GroupVersionKind) *declaredKind {
	one := &Kind[T]{op: k.op, declared: &declaredKind{}, quiet: true}
	one.empty = func() client.Object {
		fresh := k.empty()
		fresh.GetObjectKind().SetGroupVersionKind(gvk)
		return fresh
	}
	one.take(gvk)
	for _, declare := range k.every.verbs {
		declare(one)
	}
	return one.declared
}

// take sets the group, version and kind.
func (k *Kind[T]) take(gvk schema.GroupVersionKind) {
	k.declared.kind = declaration.Kind{GVK: gvk, New: k.empty, Body: bodyOf(gvk), Canonical: k.canonical}
	k.declared.goType = reflect.TypeFor[T]()
}

// mistake records an error of a declaration, unless the declaration is repeated.
func (k *Kind[T]) mistake(err error) {
	if !k.quiet {
		k.op.mistake(err)
	}
}

// selection returns the selection for the engine. The order of its related kinds is that of the handlers.
func (d *declaredSelection) selection(op *Operator, forms cachedForms) declaration.Selection {
	watched := func(one relatedKind) declaration.Watched {
		gvk, _ := op.relatedGVK(one) // Operator.watched has checked it.
		return declaration.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}
	}
	made := declaration.Selection{Of: d.of}
	for _, one := range d.related {
		made.Watched = append(made.Watched, watched(one))
	}
	made.At = func(gvk schema.GroupVersionKind) declaration.Kind {
		declared := d.at(gvk)
		kind := declared.kind
		for _, one := range declared.related {
			kind.Relations = append(kind.Relations, one.relationOf(gvk, watched(one)))
		}
		return kind
	}
	return made
}

// checkSelected returns mistakes in the declarations of ForEvery.
func (op *Operator) checkSelected() error {
	var found []error
	where := map[string]*declaredSelection{}
	for _, declared := range op.selected {
		found = append(found, declared.check())
		for _, one := range declared.handlers() {
			if other, taken := where[one.ID]; taken && other != declared {
				found = append(found, fmt.Errorf("handler %q of %s: %s has a handler with this id too, and a kind can be selected by both: give each its own id",
					one.ID, declared.kind.GVK.Kind, other.kind.GVK.Kind))
			}
			where[one.ID] = declared
		}
	}
	return errors.Join(found...)
}

// everyKind returns the declared kinds: those of For and those of ForEvery.
func (op *Operator) everyKind() []*declaredKind {
	all := append([]*declaredKind(nil), op.kinds...)
	for _, declared := range op.selected {
		all = append(all, declared.declaredKind)
	}
	return all
}

// mayBeSecrets reports whether the selector covers core Secrets.
func (d *declaredSelection) mayBeSecrets() bool {
	return d.of.Covers(selection.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Singular: "secret"})
}
