package kube

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache returns a cache with the same informers. Its Get returns an UndecodableError for an object that could not be decoded, together with
// the metadata of the object. Its List leaves such objects out.
func (t *Tolerance) Cache(of cache.Cache) cache.Cache { return tolerantCache{Cache: of, tolerance: t} }

type tolerantCache struct {
	cache.Cache

	tolerance *Tolerance
}

// ToleranceOf returns the Tolerance of a cache, or nil.
func ToleranceOf(of cache.Cache) *Tolerance {
	tolerant, _ := of.(tolerantCache)
	return tolerant.tolerance
}

// NamespacedCacheOf returns the NamespacedCache that a cache consists of, or nil.
func NamespacedCacheOf(of cache.Cache) *NamespacedCache {
	if tolerant, is := of.(tolerantCache); is {
		of = tolerant.Cache
	}
	namespaced, _ := of.(*NamespacedCache)
	return namespaced
}

// Get reads an object.
func (c tolerantCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := c.Cache.Get(ctx, key, into, options...); err != nil {
		return err //nolint:wrapcheck // The error names the object.
	}
	if failure := c.tolerance.Failure(into); failure != nil {
		return fmt.Errorf("read %s from the cache: %w", key, failure)
	}
	return nil
}

// List reads the objects of a kind.
func (c tolerantCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := c.Cache.List(ctx, into, options...); err != nil {
		return err //nolint:wrapcheck // The error names the kind.
	}
	return c.tolerance.leaveOut(into)
}

// List lists objects on the API server, and leaves out those that cannot be decoded.
func (t *Tolerance) List(ctx context.Context, into client.ObjectList, list func(context.Context) error) error {
	err := list(ctx)
	if t == nil || err == nil || !mayBeDecoding(err) {
		return err
	}
	items, failed := meta.GetItemsPtr(into)
	if failed != nil {
		return err
	}
	reflect.ValueOf(items).Elem().SetZero() // The decoder would keep fields of items that it decoded before.
	goType := reflect.TypeOf(items).Elem().Elem()
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if err := list((&tolerantSource{mark: t.mark, goType: goType, replaced: map[types.NamespacedName]bool{}}).check(ctx)); err != nil {
		return err
	}
	return t.leaveOut(into)
}

// leaveOut removes the objects that could not be decoded from a list.
func (t *Tolerance) leaveOut(into client.ObjectList) error {
	if _, free := into.(runtime.Unstructured); free {
		return nil
	}
	marked := false
	complete := make([]runtime.Object, 0, meta.LenList(into))
	err := meta.EachListItem(into, func(item runtime.Object) error {
		if one, is := item.(metav1.Object); !is || t.Failure(one) == nil {
			complete = append(complete, item)
		} else {
			marked = true
		}
		return nil
	})
	if err == nil && marked {
		err = meta.SetList(into, complete)
	}
	if err != nil {
		return fmt.Errorf("filter list of %T: %w", into, err)
	}
	return nil
}
