package declaration

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// Kind is one kind of objects and what is declared for it.
type Kind struct {
	GVK schema.GroupVersionKind
	// New makes an empty object in the form in which the kind is cached and handled.
	New func() client.Object
	// Body and Canonical give an object, or a raw body, in the form in which handlers' types write it.
	Body      func(client.Object) (object.Body, error)
	Canonical func(object.Body) (object.Body, error)
	Handlers  []Handler
	// Observers are called for each event of the watch.
	Observers []Handler
	// Relations are the kinds whose objects wake its handlers, where the kind was chosen at run time.
	Relations []Relation
}

// Handler is a declared handler and its function.
type Handler struct {
	handler.Declaration
	Call func(ctx context.Context, call *attempt.Call) error
	// AttemptTimeout ends the context of an attempt; 0 is that of the operator.
	AttemptTimeout time.Duration
	// Concurrency is how many items of the handler run at the same time.
	Concurrency int
	// StopGrace is the time between the word to stop and the end of a daemon's context. Abandon is how long after that
	// Einmal stops waiting for it; 0 for never.
	StopGrace, Abandon time.Duration
}

// Secret reports whether the kind is the Secret of the core API, in whatever form.
func (k Kind) Secret() bool { return k.GVK.GroupKind() == schema.GroupKind{Kind: "Secret"} }

// Recorded reports whether objects of the kind get a record.
func (k Kind) Recorded() bool {
	return k.Pure("", object.Defaults{}).Recorded()
}

// Pure returns the pure part of the kind.
func (k Kind) Pure(identity string, defaults object.Defaults) handler.Kind {
	pure := handler.Kind{}
	for _, h := range k.Handlers {
		pure.Handlers = append(pure.Handlers, h.Declaration)
	}
	fields := pure.StatusFields()
	pure.Normalize = func(essence object.Body) object.Body {
		filled, _ := defaults.Fill(essence).(object.Body)
		canonical, err := k.Canonical(filled)
		if err != nil {
			return essence // Not readable as today's type: then it is compared as it was written.
		}
		return object.Essence(canonical, identity, fields)
	}
	return pure
}

// Handler returns the declared handler with an id, or the zero value.
func (k Kind) Handler(id string) Handler {
	for _, h := range k.Handlers {
		if h.ID == id {
			return h
		}
	}
	return Handler{}
}

// Writes reports whether objects of the kind get a record or a finalizer.
func (k Kind) Writes() bool {
	return slices.ContainsFunc(k.Handlers, func(h Handler) bool { return h.Recorded() || h.Verb == cause.Daemon && !h.Optional })
}
