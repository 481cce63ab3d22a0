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
)

// WatermarkStore is the ConfigMap in which an operator stores its watermarks, by kind and scope.
type WatermarkStore struct {
	Client client.Client
	// Place is the name of the ConfigMap. Without a namespace nothing is stored.
	Place types.NamespacedName
	Owner string
}

// Kept reports whether watermarks are stored.
func (l WatermarkStore) Kept() bool { return l.Place.Namespace != "" }

// Read returns the watermarks of a resource by namespace. The watermark under "" applies to all namespaces.
func (l WatermarkStore) Read(ctx context.Context, resource string) (map[string]time.Time, error) {
	found := &corev1.ConfigMap{}
	if err := l.Client.Get(ctx, l.Place, found); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read watermarks from ConfigMap %s: %w", l.Place, err)
	}
	stored := map[string]time.Time{}
	for key, text := range found.Data {
		of, namespace, _ := strings.Cut(key, scopeSeparator)
		if of != resource {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("invalid watermark %s in ConfigMap %s: %w; remove the key", key, l.Place, err)
		}
		stored[namespace] = at
	}
	return stored, nil
}

// scopeSeparator cannot occur in the name of a resource or namespace.
const scopeSeparator = "_"

func scopeKey(resource, namespace string) string {
	if namespace == "" {
		return resource
	}
	return resource + scopeSeparator + namespace
}

// Write stores the watermark of a resource in a namespace, or in all namespaces if it is "".
func (l WatermarkStore) Write(ctx context.Context, resource, namespace string, at time.Time) error {
	return l.merge(ctx, map[string]any{scopeKey(resource, namespace): at.UTC().Format(time.RFC3339)})
}

// Remove removes the watermark of a resource in a deleted namespace.
func (l WatermarkStore) Remove(ctx context.Context, resource, namespace string) error {
	return l.merge(ctx, map[string]any{scopeKey(resource, namespace): nil})
}

// merge changes keys of the ConfigMap, and creates it if necessary. A nil value removes a key.
func (l WatermarkStore) merge(ctx context.Context, data map[string]any) error {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.Place.Namespace, Name: l.Place.Name}}
	merge, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode watermark: %w", err)
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
		if apierrors.IsAlreadyExists(err) { // The watermark of another kind was written at the same time.
			err = change()
		}
	}
	if err != nil {
		return fmt.Errorf("write watermarks to ConfigMap %s: %w", l.Place, err)
	}
	return nil
}
