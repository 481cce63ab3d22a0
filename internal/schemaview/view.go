package schemaview

import (
	"reflect"
	"sync/atomic"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// View is how the objects of a kind are seen: what handlers declare, with the defaults of the schema, and what the API server tells of the kind. It does not
// change: a reconciliation keeps to the one with which it has begun.
type View struct {
	Pure        handler.Kind
	Description kube.Description
	// HidesRecords: an earlier release may have kept records in the status, which the Go type of this one drops on reading. Records are in the annotation then.
	HidesRecords bool
}

// New returns the view of a kind that is described so.
func New(kind declaration.Kind, identity string, described kube.Description) View {
	pure := kind.Pure(identity, described.Defaults)
	hides := pure.Recorded() && described.Carrier == record.Status && !typeHasRoom(kind, identity)
	if hides {
		described.Carrier = record.Annotation
	}
	return View{Pure: pure, Description: described, HidesRecords: hides}
}

// typeHasRoom reports whether a record in the status survives being read as the handlers' type.
func typeHasRoom(kind declaration.Kind, identity string) bool {
	at := record.Status.Path(identity)
	body, err := kind.Canonical(object.With(object.Body{}, at, "x"))
	return err == nil && object.Text(body, at...) == "x"
}

// Same reports whether two descriptions of a kind differ at most in the hash of the group's schemas.
func Same(one, other kube.Description) bool {
	one.Schema, other.Schema = "", ""
	return reflect.DeepEqual(one, other)
}

// Current holds the newest view of a kind. Any goroutine may call Now and Set.
type Current struct {
	newest atomic.Pointer[View]
	// digests are set before the first reconciliation.
	digests object.Digester
}

// Now returns the newest view.
func (c *Current) Now() *View { return c.newest.Load() }

// Set sets the newest view.
func (c *Current) Set(next View) {
	next.Pure.Digests = c.digests
	c.newest.Store(&next)
}

// Digest sets how the values of Secrets are compared. Call it before the first reconciliation.
func (c *Current) Digest(with object.Digester) {
	c.digests = with
	c.Set(*c.Now())
}
