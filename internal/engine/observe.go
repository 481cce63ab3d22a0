package engine

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/objects"
)

// noteEvent keeps an event for the next reconciliation of its object. Without observers only deletions matter: memos end with them.
func (k *kindController) noteEvent(kind cause.Cause, of any) {
	known, is := objectOf(of)
	if is && (len(k.kind.Observers) > 0 && !k.undecodables.failed(of) || kind == objects.Deleted) {
		next := objects.Event{Kind: kind, Object: known}
		k.state.Objects.PutEvent(client.ObjectKeyFromObject(known), next)
	}
}

// noteUpdate keeps a change. What a new list shows in the place of another object is that one's end and a beginning.
func (k *kindController) noteUpdate(before, after any) {
	old, wasObject := objectOf(before)
	now, isObject := objectOf(after)
	if wasObject && isObject && old.GetUID() != now.GetUID() {
		k.noteEvent(objects.Deleted, before)
		k.noteEvent(objects.Added, after)
		return
	}
	k.noteEvent(objects.Modified, after)
}
