package attempt

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
)

// Call is one attempt of a handler, as it is handed out and as it comes back.
type Call struct {
	handler.Run
	// Diff is the difference between Old and what the handler sees now, cut to the handler's fields.
	Diff []object.Difference
	Log  *slog.Logger
	// Given is the object without bookkeeping. Left is what the handler made of it; equal to Given if nil.
	Given object.Body
	Left  object.Body
	// TriggeredBy are the related objects whose changes have woken a level-triggered handler.
	TriggeredBy []objects.Trigger
	// Say sends an event about an object; nil is the handled object.
	Say func(about *corev1.ObjectReference, kind, reason, text string)
	// Memo holds what handlers remember of the object in this process.
	Memo func() *sync.Map
	// Steps are the handler's parts; nil for a handler of which nothing is recorded.
	Steps *Steps
	// Mail is what the attempt posts to the reconciliation that has begun it; nil for daemons and event handlers, which post nothing.
	Mail *Mailbox
	// Sync writes what is left of Given, and gives the newest object. Stopping ends when the handler is to stop. Both are for
	// daemons alone.
	Sync     func(ctx context.Context, left object.Body) (object.Body, error)
	Stopping <-chan struct{}
}

// NewCall returns a call with its log and its events. Both redact with the object as it is given.
func NewCall(run handler.Run, given object.Body, about report.Object) *Call {
	return &Call{Run: run, Given: given, Log: about.HandlerLog(run, given), Say: about.EventFunc(given)}
}

// Judge returns what counts of an attempt of a handler for the object with a uid, by the error that it has returned.
func Judge(run handler.Run, uid string, err error) handler.Result {
	verdict := invoke.Classify(err)
	bare := handler.Result{Outcome: verdict.Outcome, Delay: verdict.Delay, Asked: verdict.Asked, Broken: verdict.Broken}
	if err != nil {
		bare.Message = err.Error()
	}
	return run.Judge(uid, bare, time.Now())
}
