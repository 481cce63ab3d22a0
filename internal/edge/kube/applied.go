package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FromCache reads an object from the cache of a client. It reports whether the client caches the kind in the form of the object and has the object.
func FromCache(ctx context.Context, from client.Client, kind schema.GroupVersionKind, key client.ObjectKey, into client.Object) bool {
	split, is := from.(SplitClient)
	return is && split.Cached.has(kind, into) && split.Cache.Get(ctx, key, into) == nil
}

// Applied remembers the children of one object as Apply has left them. The zero value is empty.
type Applied struct {
	mu       sync.Mutex
	children map[Child]applied
}

// Child names a child.
type Child struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
}

// Wish identifies a desired state.
type Wish [sha256.Size]byte

// WishOf returns the identity of a desired state: of everything that the request depends on. It returns false if there is none.
func WishOf(parts ...any) (Wish, bool) {
	text, err := json.Marshal(parts)
	return sha256.Sum256(text), err == nil
}

type applied struct {
	wish    Wish
	uid     types.UID
	version string
}

// Keep remembers that Apply has brought a child to a desired state.
func (a *Applied) Keep(child Child, wish Wish, result client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.children == nil {
		a.children = make(map[Child]applied)
	}
	a.children[child] = applied{wish: wish, uid: result.GetUID(), version: result.GetResourceVersion()}
}

// Unchanged reports whether the cache of the client shows the child exactly as the last Apply of this desired state left it, so that another one would
// change nothing. If so, it reads the child. It is false if the kind is not cached in the form of the object.
func (a *Applied) Unchanged(ctx context.Context, from client.Client, child Child, wish Wish, into client.Object) bool {
	a.mu.Lock()
	last, known := a.children[child]
	a.mu.Unlock()
	if !known || last.wish != wish {
		return false
	}
	own := reflect.ValueOf(into).Elem()
	found, is := reflect.TypeAssert[client.Object](reflect.New(own.Type()))
	if !is || !FromCache(ctx, from, child.Kind, child.Key, found) {
		return false
	}
	if found.GetUID() != last.uid || found.GetResourceVersion() != last.version { // mutant: apply-skips-drift
		return false
	}
	found.GetObjectKind().SetGroupVersionKind(child.Kind)
	own.Set(reflect.ValueOf(found).Elem())
	return true
}
