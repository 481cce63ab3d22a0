package engine

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/objects"
)

// noteExisting adds an object that existed before this process saw it to those without a record, before it waits in the queue. It
// may have a record: its first reconciliation finds out.
func (k *kindController) noteExisting(listed any) {
	if one, ok := k.recordable(listed); ok {
		k.store.Missing(booksOf(one))
	}
}

// noteArrival adds an object that this process saw arrive to those without a record, before it waits in the queue.
func (k *kindController) noteArrival(added any) {
	if one, ok := k.recordable(added); ok {
		k.store.Arrived(booksOf(one))
	}
}

// booksOf returns an object of the cache as the store of its kind knows it.
func booksOf(one client.Object) kindstore.Object {
	return kindstore.Object{
		Namespace: one.GetNamespace(), UID: string(one.GetUID()), Name: client.ObjectKeyFromObject(one).String(), Created: one.GetCreationTimestamp().UTC(),
	}
}

// recordable returns the object if it is one that gets a record: of a kind whose every object gets one, not the operator's own, and
// not being deleted.
func (k *kindController) recordable(delivered any) (client.Object, bool) {
	one, ok := objectOf(delivered)
	if !ok || one.GetDeletionTimestamp() != nil || k.own(client.ObjectKeyFromObject(one)) || !k.views.Now().Pure.EveryObject() {
		return nil, false
	}
	return one, true
}

// noteDeparture records that an object is gone.
func (k *kindController) noteDeparture(deleted any) {
	one, is := objectOf(deleted)
	if !is {
		return
	}
	k.startup.Done(client.ObjectKeyFromObject(one))
	k.store.Gone(one.GetNamespace(), string(one.GetUID()))
}

// noteReplaced handles a list that shows a new object under the name of an old one: the watch has missed the deletion.
func (k *kindController) noteReplaced(before, after any) {
	old, wasObject := objectOf(before)
	now, isObject := objectOf(after)
	if wasObject && isObject && old.GetUID() != now.GetUID() {
		k.noteDeparture(before)
		k.noteArrival(after)
	}
}

// listedLater reports whether the first list of a namespace that was created after this process started shows the object. The
// object is at least as new as its namespace.
func (k *kindController) listedLater(listed any) bool {
	one, is := objectOf(listed)
	return is && k.startup.Complete() && k.namespaces.Appeared(one.GetNamespace())
}

// noteListed delivers what the first list shows, unless it was delivered before.
func (k *kindController) noteListed(listed any) {
	now, is := objectOf(listed)
	if !is {
		return
	}
	before := k.state.Objects.Delivered(client.ObjectKeyFromObject(now))
	switch {
	case before == nil:
		k.noteEvent(objects.Listed, listed)
	case !unchanged(before, listed):
		k.noteUpdate(before, listed)
	}
}

// catchUp delivers, after the first list, the deletion of objects that are gone, and reconciles all that are remembered.
func (k *kindController) catchUp() {
	for _, gone := range k.state.Objects.NotListed() {
		k.noteEvent(objects.Deleted, gone)
		enqueue(k.queue, gone)
	}
	for _, key := range k.state.Objects.Keys() {
		k.wake(key)
	}
}
