package apiserver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// collector does what the garbage collector and the controllers of namespaces and definitions do in a cluster, in a
// goroutine of its own: owners go before what they own, unless they wait for it.
type collector struct {
	server *Server
	wake   chan struct{}

	mu  sync.Mutex
	due map[store.Key]struct{}
	// later is when to look at objects again.
	later map[store.Key]time.Time
	// begun is when the deletion of a namespace or a pod was requested.
	begun    map[store.Key]time.Time
	children map[types.UID]map[store.Key]struct{}
}

func newCollector(s *Server) *collector {
	return &collector{
		server: s, wake: make(chan struct{}, 1),
		due: map[store.Key]struct{}{}, later: map[store.Key]time.Time{}, begun: map[store.Key]time.Time{},
		children: map[types.UID]map[store.Key]struct{}{},
	}
}

// noticed is called for each write.
func (c *collector) noticed(key store.Key, object *unstructured.Unstructured) {
	owners := object.GetOwnerReferences()
	if len(owners) == 0 && key.Resource != namespaces && object.GetDeletionTimestamp() == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, owner := range owners {
		if c.children[owner.UID] == nil {
			c.children[owner.UID] = map[store.Key]struct{}{}
		}
		c.children[owner.UID][key] = struct{}{}
	}
	if _, known := c.begun[key]; !known && object.GetDeletionTimestamp() != nil {
		c.begun[key] = time.Now()
	}
	c.demandAfter(key, c.wait(key, object))
}

// wait is how long an object that is being deleted is left alone.
func (c *collector) wait(key store.Key, object *unstructured.Unstructured) time.Duration {
	begun, deleting := c.begun[key]
	switch {
	case deleting && key.Resource == namespaces:
		return time.Until(begun.Add(namespaceGrace))
	case deleting && key.Resource == pods:
		return time.Until(begun.Add(time.Duration(grace(object)) * time.Second))
	}
	return 0
}

// early reports whether it is too early to look at an object; the collector looks again when it is not.
func (c *collector) early(key store.Key, object *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wait(key, object) > 0
}

// gone is called for each deletion.
func (c *collector) gone(key store.Key, last *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for child := range c.children[last.GetUID()] {
		c.demand(child)
	}
	delete(c.children, last.GetUID())
	delete(c.later, key)
	delete(c.begun, key)
	for _, owner := range last.GetOwnerReferences() {
		c.drop(owner.UID, key)
		c.demandOwner(owner, key)
	}
	if furniture(key) {
		c.demand(store.Key{Resource: namespaces, Name: key.Namespace})
	}
	for _, claim := range claimsOf(key, last) {
		c.demand(claim)
	}
	c.demand(store.Key{Resource: definitions, Name: key.Resource})
}

// drop forgets that an owner owns a child.
func (c *collector) drop(owner types.UID, child store.Key) {
	delete(c.children[owner], child)
	if len(c.children[owner]) == 0 {
		delete(c.children, owner)
	}
}

// demandOwner looks at an owner again, which may wait for its children.
func (c *collector) demandOwner(owner metav1.OwnerReference, child store.Key) {
	if k := c.server.kinds.byKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)); k != nil {
		c.demand(ownerKey(k, owner, child.Namespace))
	}
}

func ownerKey(k *kind.Kind, owner metav1.OwnerReference, namespace string) store.Key {
	key := store.Key{Resource: k.Resource(), Name: owner.Name}
	if k.Namespaced {
		key.Namespace = namespace
	}
	return key
}

func (c *collector) demand(key store.Key) {
	c.due[key] = struct{}{}
	c.signal()
}

// demandAfter looks at an object again after a while.
func (c *collector) demandAfter(key store.Key, delay time.Duration) {
	if delay <= 0 {
		c.demand(key)
		return
	}
	c.later[key] = time.Now().Add(delay)
	c.signal()
}

func (c *collector) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *collector) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.wake:
		}
		due, next := c.take(time.Now())
		timer.Stop()
		if next > 0 { // An idle server has no timer, so that synctest notices a deadlock.
			timer.Reset(next)
		}
		for _, key := range due {
			c.look(key)
		}
	}
}

// take returns what is due now, and when the collector has to look again; 0 is not before the next change.
func (c *collector) take(now time.Time) (due []store.Key, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.later {
		if left := at.Sub(now); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		delete(c.later, key)
		c.due[key] = struct{}{}
	}
	due = slices.SortedFunc(maps.Keys(c.due), compareKeys)
	c.due = map[store.Key]struct{}{}
	return due, next
}

// look does what is due for one object.
func (c *collector) look(key store.Key) {
	_ = c.server.store.Do(func(tx *store.Tx) error { // What cannot be done now is looked at again with the next change.
		object := tx.Get(key)
		k := c.server.kinds.ofResource(key.Resource)
		if object == nil || k == nil || c.early(key, object) {
			return nil
		}
		w := &write{server: c.server, tx: tx, kind: k, manager: "kube-controller-manager"}
		if object.GetDeletionTimestamp() != nil {
			return c.finish(w, key, object)
		}
		if key.Resource == namespaces {
			return c.server.furnish(tx, key.Name)
		}
		return c.collect(w, key, object)
	})
}

// collect deletes an object whose owners are gone.
func (c *collector) collect(w *write, key store.Key, object *unstructured.Unstructured) error {
	var kept []metav1.OwnerReference
	references := object.GetOwnerReferences()
	waiting := false
	for _, reference := range references {
		state := c.owner(w.tx, reference, key.Namespace)
		waiting = waiting || state == ownerWaiting
		if state == ownerSolid {
			kept = append(kept, reference)
		}
	}
	if len(references) == 0 || len(kept) == len(references) {
		return nil
	}
	if len(kept) > 0 {
		changed := object.DeepCopy()
		changed.SetOwnerReferences(kept)
		w.tx.Put(key, changed)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if waiting && len(c.childrenOf(object.GetUID())) > 0 {
		policy = metav1.DeletePropagationForeground
	}
	_, _, err := w.delete(key, &metav1.DeleteOptions{PropagationPolicy: &policy})
	return err
}

// ownerState is what an owner means for what it owns.
type ownerState int

const (
	ownerSolid ownerState = iota
	ownerAbsent
	// ownerWaiting is an owner that waits for what it owns to go.
	ownerWaiting
)

func (c *collector) owner(tx *store.Tx, reference metav1.OwnerReference, namespace string) ownerState {
	k := c.server.kinds.byKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
	switch {
	case k == nil && namespace != "" && servedElsewhere(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)):
		return ownerAbsent
	case k == nil || k.Namespaced && namespace == "":
		return ownerSolid // A real collector keeps what it cannot look up.
	}
	owner := tx.Get(ownerKey(k, reference, namespace))
	switch {
	case owner == nil || owner.GetUID() != reference.UID:
		return ownerAbsent
	case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return ownerWaiting
	}
	return ownerSolid
}

func (c *collector) childrenOf(uid types.UID) []store.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.children[uid]), compareKeys)
}

// finish does what an object that is being deleted waits for.
func (c *collector) finish(w *write, key store.Key, object *unstructured.Unstructured) error {
	switch {
	case key.Resource == namespaces:
		return c.emptyNamespace(w, key)
	case key.Resource == claims && slices.Contains(object.GetFinalizers(), claimFinalizer):
		return c.release(w, key)
	case key.Resource == pods && grace(object) > 0:
		return w.stop(key)
	case key.Resource == definitions && slices.Contains(object.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer):
		if !c.empty(w, func(child store.Key) bool { return child.Resource == key.Name }) {
			return nil
		}
		return c.unblock(w, key, apiextensionsv1.CustomResourceCleanupFinalizer)
	case slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return c.orphan(w, key, object)
	case slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return c.foreground(w, key, object)
	}
	return nil
}
