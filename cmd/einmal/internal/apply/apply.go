// Package apply applies objects by server-side apply, explains failures in plain words and deletes applied objects.
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

// FieldManager is the field manager of everything that einmal applies.
const FieldManager = "einmal-dev"

// Applier applies objects of any kind that the API server serves.
type Applier struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	mapper    meta.ResettableRESTMapper
	namespace string
}

// New returns an applier for the API server of config. The namespace is used for namespaced objects that name none.
func New(config *rest.Config, namespace string) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	lookup, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(lookup))
	return &Applier{client: client, discovery: lookup, mapper: mapper, namespace: namespace}, nil
}

// Apply applies the objects in dependency order (manifest.Sort) and calls applied for each object that the API server
// accepted. After CustomResourceDefinitions, it waits until the API server serves their kinds. It continues after a
// failure and returns all failures joined.
func (a *Applier) Apply(ctx context.Context, objects []manifest.Object, applied func(Applied)) error {
	ordered := append([]manifest.Object{}, objects...)
	manifest.Sort(ordered)
	var failures []error
	for len(ordered) > 0 {
		end := groupSize(ordered)
		group := ordered[:end]
		ordered = ordered[end:]
		failed := len(failures)
		for _, object := range group {
			one, err := a.applyOne(ctx, object)
			if err != nil {
				failures = append(failures, explain(object, err))
				continue
			}
			applied(one)
		}
		if isDefinition(group[0]) && len(failures) == failed {
			if err := a.awaitDefinitions(ctx, group); err != nil {
				failures = append(failures, err)
			}
		}
	}
	return errors.Join(failures...)
}

// groupSize returns the length of the longest prefix that consists only of CustomResourceDefinitions, or only of other
// objects.
func groupSize(objects []manifest.Object) int {
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
	// Only objects that certainly did not exist before may be deleted later.
	_, before := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	live, err := client.Apply(ctx, object.GetName(), object.Unstructured, options)
	if err != nil {
		return Applied{}, err
	}
	created := apierrors.IsNotFound(before) && !slices.ContainsFunc(live.GetManagedFields(), func(fields metav1.ManagedFieldsEntry) bool {
		return fields.Manager != FieldManager // another client created it between Get and Apply
	})
	return Applied{Object: object, Resource: resource, UID: live.GetUID(), Created: created}, nil
}

// find returns the resource and client for an object. It sets the namespace of a namespaced object that names none.
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

// IsNew reports whether the cluster has no object of the same kind, namespace and name. It reports false if the lookup
// fails. An unknown kind has no objects.
func (a *Applier) IsNew(ctx context.Context, object manifest.Object) bool {
	_, client, err := a.find(object)
	if err != nil {
		return meta.IsNoMatchError(err)
	}
	_, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// mapping returns the REST mapping of a kind. It refreshes the discovery cache if the kind is not in it.
func (a *Applier) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}
