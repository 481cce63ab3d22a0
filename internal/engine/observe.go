package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// The kinds of events of a watch, and what handlers of them are declared for. No pass has them for its cause.
const (
	Listed   cause.Cause = "listed"   // the object was there when the process began
	Added    cause.Cause = "added"    // it was created, or has come into sight
	Modified cause.Cause = "modified" // it was changed
	Deleted  cause.Cause = "deleted"  // it is gone

	Event cause.Cause = "event"
)

// errObserverWrites refuses what an event handler did to its copy: the object may have moved on since the event.
var errObserverWrites = errors.New("event handler changed the object, but its changes are not written because the event may be old; " +
	"write with the Client, or use a handler of another verb")

// event is one event of the watch.
type event struct {
	kind   cause.Cause
	object client.Object
}

// eventBuffer holds the events of each object until its next pass delivers them.
type eventBuffer struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName][]event
}

// put adds an event. Of several changes in a row only the newest is kept, so that an object which changes faster than it
// is handled takes no more room.
func (b *eventBuffer) put(key types.NamespacedName, next event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey == nil {
		b.byKey = map[types.NamespacedName][]event{}
	}
	waiting := b.byKey[key]
	if last := len(waiting) - 1; last >= 0 && next.kind == Modified && waiting[last].kind == Modified {
		waiting[last] = next
		return
	}
	b.byKey[key] = append(waiting, next)
}

// putBack returns events that were not delivered.
func (b *eventBuffer) putBack(key types.NamespacedName, undelivered []event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byKey[key] = append(slices.Clone(undelivered), b.byKey[key]...)
}

func (b *eventBuffer) take(key types.NamespacedName) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.byKey[key]
	delete(b.byKey, key)
	return waiting
}

// noteEvent keeps an event for the next pass of its object. Without observers only deletions matter: memos end with them.
func (k *keeper) noteEvent(kind cause.Cause, of any) {
	known, is := objectOf(of)
	if is && (len(k.kind.Observers) > 0 && !k.undecodables.failed(of) || kind == Deleted) {
		next := event{kind: kind, object: known}
		k.lastDelivered.note(next)
		k.eventBuffer.put(client.ObjectKeyFromObject(known), next)
	}
}

// noteUpdate keeps a change. What a new list shows in the place of another object is that one's end and a beginning.
func (k *keeper) noteUpdate(before, after any) {
	old, wasObject := objectOf(before)
	now, isObject := objectOf(after)
	if wasObject && isObject && old.GetUID() != now.GetUID() {
		k.noteEvent(Deleted, before)
		k.noteEvent(Added, after)
		return
	}
	k.noteEvent(Modified, after)
}

// observe calls the observers for events, in order. A failure is logged and has no effect on other handlers.
func (k *keeper) observe(ctx context.Context, key types.NamespacedName, events []event) {
	for i, next := range events {
		if k.stopping() {
			k.eventBuffer.putBack(key, events[i:])
			return
		}
		for _, observer := range k.kind.Observers {
			if !k.undecodables.failed(next.object) {
				k.observeOne(ctx, observer, key, next)
			}
		}
		if next.kind == Deleted {
			k.memos.forget(string(next.object.GetUID()))
		}
	}
}

func (k *keeper) observeOne(ctx context.Context, observer Handler, key types.NamespacedName, next event) {
	body, err := k.kind.Body(next.object)
	about, run := k.reports.About(key, body), handler.Run{Declaration: observer.Declaration, Reason: next.kind, Attempt: 1}
	if err != nil {
		about.Log.Error("cannot read the object of an event", "handler", run.ID, "reason", run.Reason, "attempt", run.Attempt, "error", err)
		return
	}
	concerned, err := observer.Concerns(handler.State{
		Namespace: key.Namespace, Name: key.Name, UID: string(next.object.GetUID()), Essence: k.essence(body),
	})
	if !concerned {
		if err != nil {
			about.EventHandlerFailed(run, k.reports.RedactError(err, body))
		}
		return
	}
	call := &Call{Run: run, Given: record.Cut(body), Memo: k.memos.of(string(next.object.GetUID()))}
	equip(call, about)
	begun := time.Now()
	ctx, cancel := k.attempting(ctx)
	defer cancel()
	err = invoke.Run(invoke.Named(ctx, observer.ID), k.settings.AttemptTimeout, func(ctx context.Context) error {
		return observer.Call(ctx, call)
	})
	err = refuseEdits(call, err)
	about.EventHandlerEnded(run, time.Since(begun), k.reports.RedactError(err, call.Given, call.Left))
}

// refuseEdits adds to an error that the observer has changed its copy.
func refuseEdits(call *Call, err error) error {
	if call.Left != nil && len(object.Diff(record.Strip(call.Given), record.Strip(call.Left))) > 0 {
		return errors.Join(err, errObserverWrites)
	}
	return err
}

// memos hold what handlers remember of objects in this process, by uid.
type memos struct {
	mu    sync.Mutex
	byUID map[string]*sync.Map
}

// of gives access to the memo of an object, which is made when it is first asked for.
func (m *memos) of(uid string) func() *sync.Map {
	return func() *sync.Map {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.byUID == nil {
			m.byUID = map[string]*sync.Map{}
		}
		if m.byUID[uid] == nil {
			m.byUID[uid] = &sync.Map{}
		}
		return m.byUID[uid]
	}
}

func (m *memos) forget(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}
