// Package apply applies objects by server-side apply and explains failures in plain words.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// fieldManager is the field manager of everything that einmal applies.
const fieldManager = "einmal-dev"

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
func (a *Applier) Apply(ctx context.Context, objects []manifest.Object, applied func(manifest.Object)) error {
	ordered := slices.Clone(objects)
	manifest.Sort(ordered)
	var failures []error
	var pending []manifest.Object // definitions that the API server may not serve yet
	await := func() {
		if err := a.awaitDefinitions(ctx, pending); err != nil {
			failures = append(failures, err)
		}
		pending = nil
	}
	for _, object := range ordered {
		if !isDefinition(object) {
			await()
		}
		if err := a.applyOne(ctx, object); err != nil {
			failures = append(failures, explain(object, err))
			continue
		}
		applied(object)
		if isDefinition(object) {
			pending = append(pending, object)
		}
	}
	await()
	return errors.Join(failures...)
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
	_, err = client.Apply(ctx, object.GetName(), object.Unstructured, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
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
