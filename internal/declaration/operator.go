package declaration

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

// Activity is a handler of the operator itself.
type Activity struct {
	ID string
	Do func(context.Context) error
}

// Operator is what an operator tells a test about itself.
type Operator struct {
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

// Event is what handlers of the events of a watch are declared for. No reconciliation has it as its cause.
const Event cause.Cause = "event"
