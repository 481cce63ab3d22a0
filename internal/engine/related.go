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

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/objects"
)

// watched returns the kinds that an index or a handler of another kind needs, each once.
func (o *Operator) watched() []declaration.Watched {
	var all []declaration.Watched
	add := func(one declaration.Watched) {
		if !slices.ContainsFunc(all, func(other declaration.Watched) bool { return other.GVK == one.GVK }) {
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

// relatedSource triggers the handler of a relation. It is a source of the kind's controller.
type relatedSource struct {
	of           *kindController
	relatedWatch *relatedWatch
	relation     declaration.Relation
	queue        queue
}

// relatedSourcesOf returns a source for each relation of a kind's handlers.
func (o *Operator) relatedSourcesOf(k *kindController) []*relatedSource {
	var all []*relatedSource
	for _, relation := range slices.Concat(o.Relations, k.kind.Relations) {
		if relation.Of != k.kind.GVK {
			continue
		}
		all = append(all, &relatedSource{of: k, relatedWatch: o.relatedWatches[relation.GVK], relation: relation})
	}
	return all
}

// Start subscribes to changes of the related kind. The first run of a handler sees the objects that existed before.
func (r *relatedSource) Start(ctx context.Context, to queue) error {
	r.queue = to
	r.relatedWatch.join(ctx, r)
	return nil
}

// wake triggers the handler for each handled object that a change concerns. The objects of the first list trigger none: each handled object is
// reconciled at the start anyway.
func (r *relatedSource) wake(by change) {
	if by.kind == objects.Listed && !r.relatedWatch.follower.late.Load() {
		return
	}
	var woken []types.NamespacedName
	for _, related := range by.objects() {
		if !r.of.settings.Serves(related.GetNamespace()) {
			continue
		}
		trigger := objects.Trigger{Kind: r.relation.GVK.Kind, NamespacedName: client.ObjectKeyFromObject(related), Event: by.kind}
		for _, name := range r.concerned(related) {
			key, served := r.keyOf(name, related)
			if served && !slices.Contains(woken, key) {
				woken = append(woken, key)
				r.of.state.Objects.PutTrigger(key, r.relation.Handler, trigger)
				r.of.reports.Metrics.Woken(r.relation.Handler, r.relation.GVK.GroupKind().String())
				r.queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}
}

// concerned returns the names of the handled objects that an object triggers the handler for.
func (r *relatedSource) concerned(related client.Object) []types.NamespacedName {
	if r.relation.Names == nil {
		owner := metav1.GetControllerOf(related)
		if owner == nil || owner.Kind != r.of.kind.GVK.Kind || groupOf(owner.APIVersion) != r.of.kind.GVK.Group {
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
		log := r.of.reports.Log.With("handler", r.relation.Handler, "related", r.relation.GVK.Kind+" "+client.ObjectKeyFromObject(related).String())
		if panicked, is := errors.AsType[*invoke.PanicError](err); is {
			log = log.With("stack", string(panicked.Stack))
		}
		log.Error("mapping function of Watches failed, change triggers no handler", "error", r.of.reports.Redact(err.Error()))
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

// keyOf returns the key of the handled object with a name. Without a namespace, it is in that of the related object. It returns false if
// the namespace is not served.
func (r *relatedSource) keyOf(name types.NamespacedName, related client.Object) (types.NamespacedName, bool) {
	switch {
	case !r.of.views.Now().Description.Namespaced:
		name.Namespace = ""
	case name.Namespace == "":
		name.Namespace = related.GetNamespace()
	}
	return name, name.Name != "" && r.of.settings.Serves(name.Namespace) && (name.Namespace != "" || !r.of.views.Now().Description.Namespaced)
}
