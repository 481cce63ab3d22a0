// Package apply sends objects to an API server by server-side apply, and says in words what came of it.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		return nil, fmt.Errorf("make a client: %w", err)
	}
	lookup, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(lookup))
	return &Applier{client: client, discovery: lookup, mapper: mapper, namespace: namespace}, nil
}

// Apply applies the objects in the order in which each finds what it needs (manifest.Sort) and calls applied for each
// that the API server accepted. It continues after a failure; the error holds all of them. It waits until the API
// server serves the kinds that are defined.
func (a *Applier) Apply(ctx context.Context, objects []manifest.Object, applied func(Applied)) error {
	ordered := append([]manifest.Object{}, objects...)
	manifest.Sort(ordered)
	var mistakes []error
	for len(ordered) > 0 {
		end := sameKind(ordered)
		group := ordered[:end]
		ordered = ordered[end:]
		failed := len(mistakes)
		for _, object := range group {
			one, err := a.applyOne(ctx, object)
			if err != nil {
				mistakes = append(mistakes, explain(object, err))
				continue
			}
			applied(one)
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

func (a *Applier) applyOne(ctx context.Context, object manifest.Object) (Applied, error) {
	resource, client, err := a.find(object)
	if err != nil {
		return Applied{}, err
	}
	// Only what is certain to be new may be removed later.
	_, before := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	live, err := client.Apply(ctx, object.GetName(), object.Unstructured, options)
	if err != nil {
		return Applied{}, err
	}
	created := apierrors.IsNotFound(before) && !slices.ContainsFunc(live.GetManagedFields(), func(fields metav1.ManagedFieldsEntry) bool {
		return fields.Manager != FieldManager // another client has created it in between
	})
	return Applied{Object: object, Resource: resource, UID: live.GetUID(), Created: created}, nil
}

// find returns the client for an object, and gives it a namespace if it needs one.
func (a *Applier) find(object manifest.Object) (schema.GroupVersionResource, dynamic.ResourceInterface, error) {
	mapping, err := a.mapping(object.GroupVersionKind())
	if err != nil {
		return schema.GroupVersionResource{}, nil, err
	}
	client := a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return mapping.Resource, client, nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(a.namespace)
	}
	return mapping.Resource, client.Namespace(object.GetNamespace()), nil
}

// IsNew reports whether the cluster has no object of the same kind, namespace and name. It reports false if that cannot
// be found out. A kind that the cluster does not know has no objects.
func (a *Applier) IsNew(ctx context.Context, object manifest.Object) bool {
	_, client, err := a.find(object)
	if err != nil {
		return meta.IsNoMatchError(err)
	}
	_, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
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
