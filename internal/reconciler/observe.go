package reconciler

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/objects"
)

// errObserverWrites refuses what an event handler did to its copy: the object may have moved on since the event.
var errObserverWrites = errors.New("event handler changed the object, but its changes are not written because the event may be old; " +
	"write with the Client, or use a handler of another verb")

// observe calls the observers for events, in order. A failure is logged and has no effect on other handlers.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, events []objects.Event) {
	for i, next := range events {
		if r.stopping() {
			r.State.Objects.PutEventsBack(key, events[i:])
			return
		}
		for _, observer := range r.Kind.Observers {
			if !r.Failed(next.Object) {
				r.observeOne(ctx, observer, key, next)
			}
		}
		if next.Kind == objects.Deleted {
			r.State.Objects.ForgetMemo(string(next.Object.GetUID()))
		}
	}
}

func (r *Reconciler) observeOne(ctx context.Context, observer declaration.Handler, key types.NamespacedName, next objects.Event) {
	body, err := r.Kind.Body(next.Object)
	about, run := r.Reports.About(key, body), handler.Run{Declaration: observer.Declaration, Reason: next.Kind, Attempt: 1}
	if err != nil {
		about.Log.Error("cannot read the object of an event", "handler", run.ID, "reason", run.Reason, "attempt", run.Attempt, "error", err)
		return
	}
	concerned, err := observer.Concerns(handler.State{
		Namespace: key.Namespace, Name: key.Name, UID: string(next.Object.GetUID()), Essence: r.essence(body),
	})
	if !concerned {
		if err != nil {
			about.EventHandlerFailed(run, r.Reports.RedactError(err, body))
		}
		return
	}
	call := attempt.NewCall(run, record.Cut(body), about)
	call.Memo = r.State.Objects.Memo(string(next.Object.GetUID()))
	begun := time.Now()
	ctx, cancel := r.attempting(ctx)
	defer cancel()
	err = invoke.Run(invoke.Named(ctx, observer.ID), r.Settings.AttemptTimeout, func(ctx context.Context) error {
		return observer.Call(ctx, call)
	})
	err = refuseEdits(call, err)
	about.EventHandlerEnded(run, time.Since(begun), r.Reports.RedactError(err, call.Given, call.Left))
}

// refuseEdits adds to an error that the observer has changed its copy.
func refuseEdits(call *attempt.Call, err error) error {
	if call.Left != nil && len(object.Diff(record.Strip(call.Given), record.Strip(call.Left))) > 0 {
		return errors.Join(err, errObserverWrites)
	}
	return err
}
