package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/declared"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/objects"
)

// errObserverWrites refuses what an event handler did to its copy: the object may have moved on since the event.
var errObserverWrites = errors.New("event handler changed the object, but its changes are not written because the event may be old; " +
	"write with the Client, or use a handler of another verb")

// noteEvent keeps an event for the next pass of its object. Without observers only deletions matter: memos end with them.
func (k *keeper) noteEvent(kind cause.Cause, of any) {
	known, is := objectOf(of)
	if is && (len(k.kind.Observers) > 0 && !k.undecodables.failed(of) || kind == objects.Deleted) {
		next := objects.Event{Kind: kind, Object: known}
		k.entries.PutEvent(client.ObjectKeyFromObject(known), next)
	}
}

// noteUpdate keeps a change. What a new list shows in the place of another object is that one's end and a beginning.
func (k *keeper) noteUpdate(before, after any) {
	old, wasObject := objectOf(before)
	now, isObject := objectOf(after)
	if wasObject && isObject && old.GetUID() != now.GetUID() {
		k.noteEvent(objects.Deleted, before)
		k.noteEvent(objects.Added, after)
		return
	}
	k.noteEvent(objects.Modified, after)
}

// observe calls the observers for events, in order. A failure is logged and has no effect on other handlers.
func (k *keeper) observe(ctx context.Context, key types.NamespacedName, events []objects.Event) {
	for i, next := range events {
		if k.stopping() {
			k.entries.PutEventsBack(key, events[i:])
			return
		}
		for _, observer := range k.kind.Observers {
			if !k.undecodables.failed(next.Object) {
				k.observeOne(ctx, observer, key, next)
			}
		}
		if next.Kind == objects.Deleted {
			k.entries.ForgetMemo(string(next.Object.GetUID()))
		}
	}
}

func (k *keeper) observeOne(ctx context.Context, observer declared.Handler, key types.NamespacedName, next objects.Event) {
	body, err := k.kind.Body(next.Object)
	about, run := k.reports.About(key, body), handler.Run{Declaration: observer.Declaration, Reason: next.Kind, Attempt: 1}
	if err != nil {
		about.Log.Error("cannot read the object of an event", "handler", run.ID, "reason", run.Reason, "attempt", run.Attempt, "error", err)
		return
	}
	concerned, err := observer.Concerns(handler.State{
		Namespace: key.Namespace, Name: key.Name, UID: string(next.Object.GetUID()), Essence: k.essence(body),
	})
	if !concerned {
		if err != nil {
			about.EventHandlerFailed(run, k.reports.RedactError(err, body))
		}
		return
	}
	call := attempt.NewCall(run, record.Cut(body), about)
	call.Memo = k.entries.Memo(string(next.Object.GetUID()))
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
func refuseEdits(call *attempt.Call, err error) error {
	if call.Left != nil && len(object.Diff(record.Strip(call.Given), record.Strip(call.Left))) > 0 {
		return errors.Join(err, errObserverWrites)
	}
	return err
}
