package apiserver

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// unblock takes a finalizer away; the object goes with the last one.
func (c *collector) unblock(w *write, key store.Key, finalizer string) error {
	object := w.tx.Get(key)
	if object == nil {
		return nil
	}
	changed := object.DeepCopy()
	changed.SetFinalizers(slices.DeleteFunc(changed.GetFinalizers(), func(f string) bool { return f == finalizer }))
	if len(changed.GetFinalizers()) == 0 {
		last := w.tx.Delete(key)
		return c.server.deleted(w.tx, key, last)
	}
	w.tx.Put(key, changed)
	return c.server.written(w.tx, key, changed, object)
}

// empty deletes what is in a namespace, or what is of a kind, and reports whether nothing is left.
func (c *collector) empty(w *write, within func(store.Key) bool) bool {
	empty := true
	for _, resource := range w.tx.Resources() {
		k := c.server.kinds.ofResource(resource)
		if k == nil {
			continue
		}
		deleting := &write{server: c.server, tx: w.tx, kind: k, manager: w.manager}
		for _, object := range w.tx.List(resource, "") {
			child := store.Key{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
			if within(child) && !deleting.goes(child, object) {
				empty = false
			}
		}
	}
	return empty
}

// goes deletes an object that is not being deleted yet, and reports whether it is gone at once.
func (w *write) goes(key store.Key, object *unstructured.Unstructured) bool {
	if object.GetDeletionTimestamp() != nil {
		return false
	}
	_, gone, err := w.delete(key, &metav1.DeleteOptions{})
	return err == nil && gone
}

// orphan takes the references to an owner away before it goes.
func (c *collector) orphan(w *write, key store.Key, owner *unstructured.Unstructured) error {
	for _, child := range c.childrenOf(owner.GetUID()) {
		object := w.tx.Get(child)
		if object == nil {
			continue
		}
		changed := object.DeepCopy()
		changed.SetOwnerReferences(without(object.GetOwnerReferences(), owner.GetUID()))
		w.tx.Put(child, changed)
		c.forget(owner.GetUID(), child)
	}
	return c.unblock(w, key, metav1.FinalizerOrphanDependents)
}

func without(references []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	var left []metav1.OwnerReference // nil if none is: then there is no such field.
	for _, reference := range references {
		if reference.UID != uid {
			left = append(left, reference)
		}
	}
	return left
}

func (c *collector) forget(owner types.UID, child store.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(owner, child)
}

// foreground deletes what an owner waits for; the owner goes when nothing blocks it any more.
func (c *collector) foreground(w *write, key store.Key, owner *unstructured.Unstructured) error {
	blocked := false
	for _, child := range c.childrenOf(owner.GetUID()) {
		object := w.tx.Get(child)
		if object == nil {
			continue
		}
		for _, reference := range object.GetOwnerReferences() {
			blocks := reference.UID == owner.GetUID() && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion
			blocked = blocked || blocks
		}
		if object.GetDeletionTimestamp() == nil {
			c.mu.Lock()
			c.demand(child)
			c.mu.Unlock()
		}
	}
	if blocked {
		return nil
	}
	return c.unblock(w, key, metav1.FinalizerDeleteDependents)
}
