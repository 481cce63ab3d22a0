package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// KindStore is the ConfigMap in which an operator stores what it knows of all objects of a kind: the watermarks, and the places of records. Both
// have a scope, which is a namespace, or "" for all.
type KindStore struct {
	Client client.Client
	// Place is the name of the ConfigMap. Without a namespace nothing is stored.
	Place types.NamespacedName
	Owner string
}

// Kept reports whether anything is stored.
func (l KindStore) Kept() bool { return l.Place.Namespace != "" }

// StoredKind is what is stored of a kind, by scope.
type StoredKind struct {
	Watermarks map[string]time.Time
	Places     map[string]record.Places
}

// Read returns what is stored of a resource. Its error names a key that has an invalid value.
func (l KindStore) Read(ctx context.Context, resource string) (StoredKind, error) {
	stored := StoredKind{Watermarks: map[string]time.Time{}, Places: map[string]record.Places{}}
	found := &corev1.ConfigMap{}
	if err := l.Client.Get(ctx, l.Place, found); apierrors.IsNotFound(err) {
		return stored, nil
	} else if err != nil {
		return StoredKind{}, fmt.Errorf("read ConfigMap %s: %w", l.Place, err)
	}
	for key, text := range found.Data {
		var err error
		switch of, scope, _ := strings.Cut(strings.TrimPrefix(key, placesPrefix), scopeSeparator); {
		case of != resource:
		case strings.HasPrefix(key, placesPrefix):
			stored.Places[scope], err = record.ParsePlaces(text)
		default:
			stored.Watermarks[scope], err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return StoredKind{}, fmt.Errorf("invalid value of key %s in ConfigMap %s: %w; remove the key", key, l.Place, err)
		}
	}
	return stored, nil
}

// scopeSeparator cannot occur in the name of a resource or namespace. So the keys of places cannot be those of watermarks.
const (
	scopeSeparator = "_"
	placesPrefix   = "records" + scopeSeparator
)

func scopeKey(resource, namespace string) string {
	if namespace == "" {
		return resource
	}
	return resource + scopeSeparator + namespace
}

// WriteWatermark stores the watermark of a resource in a namespace, or in all namespaces if it is "".
func (l KindStore) WriteWatermark(ctx context.Context, resource, namespace string, at time.Time) error {
	return l.merge(ctx, map[string]any{scopeKey(resource, namespace): at.UTC().Format(time.RFC3339)})
}

// WritePlaces stores the places of the records of a resource, by scope. It removes those that are nil.
func (l KindStore) WritePlaces(ctx context.Context, resource string, places map[string]record.Places) error {
	data := map[string]any{}
	for scope, of := range places {
		data[placesPrefix+scopeKey(resource, scope)] = nil
		if of != nil {
			data[placesPrefix+scopeKey(resource, scope)] = of.String()
		}
	}
	return l.merge(ctx, data)
}

// Remove removes what is stored of a resource in a deleted namespace.
func (l KindStore) Remove(ctx context.Context, resource, namespace string) error {
	key := scopeKey(resource, namespace)
	return l.merge(ctx, map[string]any{key: nil, placesPrefix + key: nil})
}

// merge changes keys of the ConfigMap, and creates it if necessary. A nil value removes a key.
func (l KindStore) merge(ctx context.Context, data map[string]any) error {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.Place.Namespace, Name: l.Place.Name}}
	merge, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode ConfigMap %s: %w", l.Place, err)
	}
	change := func() error {
		return l.Client.Patch(ctx, kept, client.RawPatch(types.MergePatchType, merge), client.FieldOwner(l.Owner))
	}
	if err = change(); apierrors.IsNotFound(err) {
		fresh := &corev1.ConfigMap{ObjectMeta: kept.ObjectMeta, Data: map[string]string{}}
		for key, value := range data {
			if text, is := value.(string); is {
				fresh.Data[key] = text
			}
		}
		err = l.Client.Create(ctx, fresh, client.FieldOwner(l.Owner))
		if apierrors.IsAlreadyExists(err) { // Of another kind, something was written at the same time.
			err = change()
		}
	}
	if err != nil {
		return fmt.Errorf("write to ConfigMap %s: %w", l.Place, err)
	}
	return nil
}
