// Package engine drives: it takes one object at a time through a pass that decides in the core and acts at the edge.
package engine

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
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
	return k.declared("", object.Defaults{}).Recorded()
}

// declared is the pure part of the kind.
func (k Kind) declared(identity string, defaults object.Defaults) handler.Kind {
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

func (k Kind) handler(id string) Handler {
	for _, h := range k.Handlers {
		if h.ID == id {
			return h
		}
	}
	return Handler{}
}

// Settings are the limits of an operator.
type Settings struct {
	// Identity names the operator: its finalizer, its record, its field manager.
	Identity string
	// Workers is how many objects of one kind are handled at the same time.
	Workers int
	// AttemptTimeout ends the context of an attempt, unless the handler has a timeout of its own.
	AttemptTimeout time.Duration
	// Grace is how long running handlers may go on after the operator receives the signal to stop; then their context ends.
	Grace time.Duration
	// Window is how long the outcome of a finished handler may be unsaved while another one runs.
	Window time.Duration
	// Margin is how old an object must be before a watermark passes it.
	Margin time.Duration
	// Namespaces are the ones that are served; Home is the one that watermarks are kept in, "" for none.
	Namespaces filter.Namespaces
	Home       string
	Log        *slog.Logger
	// LogEvents is the level from which on what handlers log is an event too; nil for never.
	LogEvents *slog.Level
	// OnAttempt is called when an attempt begins, with an empty Outcome, and when it ends, unless the object is gone. It may be nil. Only tests
	// set it.
	OnAttempt func(Attempt)
}

// Declared is what an operator tells a test about itself.
type Declared struct {
	Identity string
	Scheme   *runtime.Scheme
	// CRDs is the YAML of its definitions; Kinds are the ones that it handles.
	CRDs  [][]byte
	Kinds []schema.GroupVersionKind
	// Owned are the kinds of children whose changes trigger a handler.
	Owned []schema.GroupKind
	// Handlers are the ids of all handlers, in the order of their declaration.
	Handlers []string
	// Chosen tells which further ones it handles, of an API server as it is.
	Chosen func(context.Context, discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error)
	Rights Rights
}

// Attempt is one run of a handler that has ended.
type Attempt struct {
	Kind    schema.GroupVersionKind
	Object  types.NamespacedName
	Handler string
	Reason  cause.Cause
	// Number counts from 1.
	Number  int
	Outcome record.Outcome
}

// Finalizer is the finalizer of the operator.
func (s Settings) Finalizer() string { return s.Identity + "/finalizer" }
