package engine

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// Relation says that objects of a kind wake a level-triggered handler when they change.
type Relation struct {
	Watched

	// Of is the kind of the handler.
	Of      schema.GroupVersionKind
	Handler string
	// Names lists whom an object concerns; nil for its controller.
	Names func(client.Object) []types.NamespacedName
}

// watched are the kinds that are watched for the sake of others, each once.
func (o *Operator) watched() []Watched {
	var all []Watched
	add := func(one Watched) {
		if !slices.ContainsFunc(all, func(other Watched) bool { return other.GVK == one.GVK }) {
			all = append(all, one)
		}
	}
	for _, relation := range o.Relations {
		add(relation.Watched)
	}
	for _, index := range o.Indexes {
		add(index.Watched)
	}
	for _, chosen := range o.Selections {
		for _, watched := range chosen.Watched {
			add(watched)
		}
	}
	return all
}

// relative wakes the handler of a relation. It is a source of the keeper's controller.
type relative struct {
	keeper   *keeper
	hub      *hub
	relation Relation
	queue    queue
}

// relativesOf are the relations of a keeper's handlers.
func (o *Operator) relativesOf(k *keeper) []*relative {
	var all []*relative
	for _, relation := range slices.Concat(o.Relations, k.kind.Relations) {
		if relation.Of != k.kind.GVK {
			continue
		}
		all = append(all, &relative{keeper: k, hub: o.hubs[relation.GVK], relation: relation})
	}
	return all
}

// Start begins to be told of the related kind. What was there before, the first run of everybody sees.
func (r *relative) Start(ctx context.Context, to queue) error {
	r.queue = to
	r.hub.join(ctx, r)
	return nil
}

// wake wakes the handler for everybody whom a change concerns. Those who are concerned by what was there at the start are
// looked at anyway.
func (r *relative) wake(by change) {
	if by.kind == Listed && !r.hub.late.Load() {
		return
	}
	var woken []types.NamespacedName
	for _, related := range by.objects() {
		if !r.keeper.settings.serves(related.GetNamespace()) {
			continue
		}
		waker := Waker{Kind: r.relation.GVK.Kind, NamespacedName: client.ObjectKeyFromObject(related), Event: by.kind}
		for _, name := range r.concerned(related) {
			key, served := r.keyOf(name, related)
			if served && !slices.Contains(woken, key) {
				woken = append(woken, key)
				r.keeper.wakes.put(key, r.relation.Handler, waker)
				r.keeper.meter.Woken(r.relation.Handler, r.relation.GVK.GroupKind().String())
				r.queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}
}

// concerned lists whom an object concerns.
func (r *relative) concerned(related client.Object) []types.NamespacedName {
	if r.relation.Names == nil {
		owner := metav1.GetControllerOf(related)
		if owner == nil || owner.Kind != r.keeper.kind.GVK.Kind || groupOf(owner.APIVersion) != r.keeper.kind.GVK.Group {
			return nil
		}
		return []types.NamespacedName{{Namespace: related.GetNamespace(), Name: owner.Name}}
	}
	var names []types.NamespacedName
	err := invoke.Guard(func() error {
		names = r.relation.Names(related)
		return nil
	})
	if err != nil {
		log := r.keeper.log.With("handler", r.relation.Handler, "related", r.relation.GVK.Kind+" "+client.ObjectKeyFromObject(related).String())
		if panicked, is := errors.AsType[*invoke.PanicError](err); is {
			log = log.With("stack", string(panicked.Stack))
		}
		log.Error("mapping function of Watches failed, change triggers no handler", "error", r.keeper.scrubber.Text(err.Error()))
	}
	return names
}

func groupOf(apiVersion string) string {
	parsed, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return parsed.Group
}

// keyOf is the object of the keeper's kind that a name stands for: in the namespace of the related one if it says none. It
// is false where such objects are not served.
func (r *relative) keyOf(name types.NamespacedName, related client.Object) (types.NamespacedName, bool) {
	switch {
	case !r.keeper.shapes.now().description.Namespaced:
		name.Namespace = ""
	case name.Namespace == "":
		name.Namespace = related.GetNamespace()
	}
	return name, name.Name != "" && r.keeper.settings.serves(name.Namespace) && (name.Namespace != "" || !r.keeper.shapes.now().description.Namespaced)
}

// serves reports whether objects of a namespace are looked at; those without one are.
func (s Settings) serves(namespace string) bool {
	return namespace == "" || s.Namespaces.Match(namespace)
}
