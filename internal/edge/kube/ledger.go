package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ledger is the ConfigMap in which an operator keeps its watermarks, by kind and scope.
type Ledger struct {
	Client client.Client
	// Place is where the ConfigMap is; without a namespace nothing is kept.
	Place types.NamespacedName
	Owner string
}

// Kept tells whether there is a place for watermarks.
func (l Ledger) Kept() bool { return l.Place.Namespace != "" }

// Read returns the newest of the watermarks under the keys; zero for none.
func (l Ledger) Read(ctx context.Context, keys ...string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found := &corev1.ConfigMap{}
	if err := l.Client.Get(ctx, l.Place, found); apierrors.IsNotFound(err) {
		return time.Time{}, nil
	} else if err != nil {
		return time.Time{}, fmt.Errorf("read the watermarks in ConfigMap %s: %w", l.Place, err)
	}
	newest := time.Time{}
	for _, key := range keys {
		text, kept := found.Data[key]
		if !kept {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, fmt.Errorf("watermark %s in ConfigMap %s: %w; remove the key", key, l.Place, err)
		}
		if at.After(newest) {
			newest = at
		}
	}
	return newest, nil
}

// Write stores a watermark.
func (l Ledger) Write(ctx context.Context, key string, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data := map[string]string{key: at.UTC().Format(time.RFC3339)}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.Place.Namespace, Name: l.Place.Name}}
	merge, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode the watermark: %w", err)
	}
	err = l.Client.Patch(ctx, kept, client.RawPatch(types.MergePatchType, merge), client.FieldOwner(l.Owner))
	if apierrors.IsNotFound(err) {
		kept.Data = data
		err = l.Client.Create(ctx, kept, client.FieldOwner(l.Owner))
	}
	if err != nil {
		return fmt.Errorf("write the watermark to ConfigMap %s: %w", l.Place, err)
	}
	return nil
}
