package declaration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// Watched is a kind that is watched for the sake of others.
type Watched struct {
	GVK schema.GroupVersionKind
	// New makes an empty object in the form in which the kind is cached.
	New func() client.Object
}

// Place is the name under which readiness reports it.
func (w Watched) Place() string { return "related " + w.GVK.String() }

// Relation declares that changes of objects of one kind trigger a level-triggered handler of another.
type Relation struct {
	Watched

	// Of is the kind of the handler.
	Of      schema.GroupVersionKind
	Handler string
	// Names returns the handled objects that an object triggers the handler for; nil for its controller.
	Names func(client.Object) []types.NamespacedName
}

// Index is a lookup that follows the objects of a kind.
type Index struct {
	Watched
	handler.Declaration

	// Body decodes an object for the filters.
	Body func(client.Object) (object.Body, error)
	// Compute asks the author's function for the entries of an object, and returns what enters them in the place of earlier ones.
	Compute func(client.Object) (enter func(), err error)
	// Remove takes out the entries of an object.
	Remove func(types.NamespacedName)
	// Size is of how many objects there are entries.
	Size func() int
}

// Indexing is what an index is declared for. No reconciliation has it as its cause.
const Indexing cause.Cause = "index"
