// Package apply sends objects to an API server by server-side apply, and says in words what came of it.
package apply

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// FieldManager is the name under which all that einmal applies is owned.
const FieldManager = "einmal-dev"

// Applier applies objects of any kind that the API server knows.
type Applier struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	mapper    meta.ResettableRESTMapper
	namespace string
}

// New returns an applier for the API server of config. Objects of namespaced kinds that name no namespace go to the
// given one.
func New(config *rest.Config, namespace string) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lookup, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(lookup))
	return &Applier{client: client, discovery: lookup, mapper: mapper, namespace: namespace}, nil
}

// Apply applies the objects in the order in which each finds what it needs (manifest.Sort), tells of each that went
// well, and goes on after one that did not. All that did not go well is in the error. Definitions of kinds are waited
// for.
func (a *Applier) Apply(ctx context.Context, objects []manifest.Object, applied func(manifest.Object)) error {
	ordered := append([]manifest.Object{}, objects...)
	manifest.Sort(ordered)
	var mistakes []error
	for len(ordered) > 0 {
		end := sameKind(ordered)
		group := ordered[:end]
		ordered = ordered[end:]
		failed := len(mistakes)
		for _, object := range group {
			if err := a.applyOne(ctx, object); err != nil {
				mistakes = append(mistakes, explain(object, err))
				continue
			}
			applied(object)
		}
		if isDefinition(group[0]) && len(mistakes) == failed {
			if err := a.awaitDefinitions(ctx, group); err != nil {
				mistakes = append(mistakes, err)
			}
		}
	}
	return errors.Join(mistakes...)
}

// sameKind returns how many of the first objects are definitions of kinds, or how many are not.
func sameKind(objects []manifest.Object) int {
	first := isDefinition(objects[0])
	for i, object := range objects {
		if isDefinition(object) != first {
			return i
		}
	}
	return len(objects)
}

func (a *Applier) applyOne(ctx context.Context, object manifest.Object) error {
	mapping, err := a.mapping(object.GroupVersionKind())
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(a.namespace)
		}
		client = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	_, err = client.Apply(ctx, object.GetName(), object.Unstructured, options)
	return err
}

// mapping looks a kind up, and asks the server again for its kinds when it is not among those known.
func (a *Applier) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}
