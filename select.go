package einmal

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Selector chooses kinds by what the API server tells of them: by a name, by a category, or all. Exactly one of Name, Category and
// Everything is given; Group and Version narrow it down.
//
// Kinds that cannot be listed and watched are left out, and so are those that cannot be patched where some handler is recorded or
// holds deletions (all but OnEvent, Reconcile, Timer, and Daemon with Optional). In an operator with Namespaces, Category and
// Everything choose kinds in namespaces alone.
type Selector struct {
	// Name is the kind, the plural, the singular or a short name, such as Deployment, deployments, deployment or deploy; with a group
	// as in deployments.apps, with a version too as in deployments.v1.apps, and pods.v1 in the core group. Where it is the
	// name of several kinds, the one of the core group is meant. If there is none, no kind is served, the log names
	// all of them, and the operator is not ready until one is left or the name has its group.
	Name string
	// Category is one that the kinds are listed in, such as all. The Events of Kubernetes are left out: to handle what is said about
	// objects would say more.
	Category string
	// Everything chooses all kinds but the Events of Kubernetes.
	Everything bool
	// Group is the API group, such as apps, and core for that of Pods and Secrets. The default is any.
	Group string
	// Version is such as v1. The default is, for each kind, the version that the API server prefers among those in which it is
	// served; when that changes, the watch moves, and what was done is not done again.
	Version string
}

// ForEvery declares that the operator handles the objects of all kinds that the selector chooses, as they come and go at run
// time, without a restart. All verbs work as with For; a handler learns of which kind its object is from the object. The ids
// are unique among all ForEvery of the operator: a kind that several of them choose is served once, with the handlers of all.
// A kind that is declared with For too is left to that; so is one that an earlier ForEvery chooses in another version. The log tells of it.
//
// What is chosen is looked at every five seconds, which costs next to nothing, and whenever a watch is in trouble. A selector with
// a Name keeps the operator from being ready as long as there is no such kind; with Category and Everything there may be none. A
// group that the API server cannot ask, since the server behind it is down, hides no other, and what was served goes on.
//
// The operator's own ConfigMap, Secret and Lease are not handled. If Secrets may be chosen, StateNamespace is needed: see For. With
// Reconcile, Owns and Watches go with each kind. ForEvery takes no options. What is chosen no more keeps its finalizers and records:
// the verb uninstall finds those of kinds that are chosen then.
func ForEvery(op *Operator, of Selector, options ...Option) *Kind[unstructured.Unstructured] {
	chosen, err := selection.New(of.Name, of.Category, of.Everything, of.Group, of.Version)
	if err != nil {
		op.mistake(fmt.Errorf("ForEvery: %w", err))
	}
	for _, option := range options {
		if option.kind != nil {
			op.mistake(fmt.Errorf("ForEvery: option %s: the selector says which kinds; leave it out, or use For", option.name))
			continue
		}
		op.mistake(option.misplaced("ForEvery"))
	}
	k := freeKind(op, schema.GroupVersionKind{Kind: "ForEvery " + chosen.String()})
	k.every = &every[unstructured.Unstructured]{}
	op.selected = append(op.selected, &declaredSelection{declaredKind: k.declared, of: chosen, at: k.at})
	return k
}

// every is what was declared for every kind that is chosen, to be declared again for each.
type every[T any] struct{ verbs []func(*Kind[T]) }

// declaredSelection is a selection as it was declared: with the handlers for a kind without a name.
type declaredSelection struct {
	*declaredKind

	of selection.Selector
	at func(schema.GroupVersionKind) *declaredKind
}

// freeKind is a kind of objects without a Go type.
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

// at declares all that was declared for one kind.
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

// take makes it the kind of that name.
func (k *Kind[T]) take(gvk schema.GroupVersionKind) {
	k.declared.kind = engine.Kind{GVK: gvk, New: k.empty, Body: bodyOf(gvk), Canonical: k.canonical}
	k.declared.goType = reflect.TypeFor[T]()
	k.declared.kind.StatusFields = statusFields(k.declared.goType)
}

// mistake notes what is wrong with a declaration, the first time that it is made.
func (k *Kind[T]) mistake(err error) {
	if !k.quiet {
		k.op.mistake(err)
	}
}

// selection is what the engine knows of it. The related kinds are those of its handlers, in their order.
func (d *declaredSelection) selection(op *Operator, forms cachedForms) engine.Selection {
	watched := func(one relatedKind) engine.Watched {
		gvk, _ := op.relatedGVK(one) // It was asked when the operator was checked.
		return engine.Watched{GVK: gvk, New: forms[gvk.GroupKind()].empty}
	}
	made := engine.Selection{Of: d.of}
	for _, one := range d.related {
		made.Watched = append(made.Watched, watched(one))
	}
	made.At = func(gvk schema.GroupVersionKind) engine.Kind {
		declared := d.at(gvk)
		kind := declared.kind
		for _, one := range declared.related {
			kind.Relations = append(kind.Relations, one.relationOf(gvk, watched(one)))
		}
		return kind
	}
	return made
}

// checkSelected finds mistakes in what is declared for kinds that are chosen at run time.
func (op *Operator) checkSelected() error {
	var found []error
	where := map[string]*declaredSelection{}
	for _, declared := range op.selected {
		found = append(found, declared.check())
		for _, one := range declared.handlers() {
			if other, taken := where[one.ID]; taken && other != declared {
				found = append(found, fmt.Errorf("handler %q of %s: %s has one of that id, and a kind that both choose is served with the handlers of both: give each its own",
					one.ID, declared.kind.GVK.Kind, other.kind.GVK.Kind))
			}
			where[one.ID] = declared
		}
	}
	return errors.Join(found...)
}

// everyKind are the kinds that are declared, by themselves or to be chosen.
func (op *Operator) everyKind() []*declaredKind {
	all := append([]*declaredKind(nil), op.kinds...)
	for _, declared := range op.selected {
		all = append(all, declared.declaredKind)
	}
	return all
}
