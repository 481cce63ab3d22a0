package simulation

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectOf reads the object that a point is about, such as: apply configmaps default/one by make.
func (w *World) objectOf(what string) (*unstructured.Unstructured, error) {
	words := strings.Fields(what)
	if len(words) < 3 { //nolint:mnd // The verb, the resource and the object.
		return nil, fmt.Errorf("%q: %w", what, errNoPoint)
	}
	return w.read(words[1], words[2])
}

// read reads an object by its resource, such as widgets.example.com, and its namespace and name.
func (w *World) read(resource, object string) (*unstructured.Unstructured, error) {
	plural, group, _ := strings.Cut(resource, ".")
	kind, err := w.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	key := client.ObjectKey{Name: object}
	if namespace, name, namespaced := strings.Cut(object, "/"); namespaced {
		key = client.ObjectKey{Namespace: namespace, Name: name}
	}
	return found, w.User.Get(context.Background(), key, found)
}

// exists reports whether the object of a request exists.
func (w *World) exists(asked Request) bool {
	_, err := w.read(asked.Resource, asked.Object)
	return !apierrors.IsNotFound(err)
}

// Exists reports whether there is an object of this kind and name.
func (w *World) Exists(kind schema.GroupVersionKind, name types.NamespacedName) bool {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	return w.User.Get(context.Background(), name, found) == nil
}

// Kinds are the kinds that the operator handles by name.
func (w *World) Kinds() []schema.GroupVersionKind { return w.declared.Kinds }
