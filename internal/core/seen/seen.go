// Package seen has what a process sees of one object: one version of it, and what counts of its record. It is pure.
package seen

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// Object is one version of an object. It does not change: what is read or written later is another Object. Make it with Cached or Live.
type Object struct {
	body, raw object.Body
	live      bool
	record    Record
}

// Cached returns an object as the cache shows it, which is in the form of the handlers' type. What the API server has is guessed from that.
func Cached(body object.Body) Object { return Object{body: body, raw: patch.Guess(body)} }

// Live returns an object as the API server has sent it, which is raw. Body is the same in the form of the handlers' type.
func Live(body, raw object.Body) Object { return Object{body: body, raw: raw, live: true} }

// WithRecord returns the object with another record.
func (o Object) WithRecord(r Record) Object {
	o.record = r
	return o
}

// Answered returns the object as the API server has answered to a write. Its Body stays: it is what handlers were given.
func (o Object) Answered(raw object.Body) Object {
	o.raw, o.live = raw, true
	return o
}

// Body returns the object in the form of the handlers' type.
func (o Object) Body() object.Body { return o.body }

// Raw returns the object as the API server has it, if the object is live, else a guess. Patches are made for it.
func (o Object) Raw() object.Body { return o.raw }

// IsLive reports whether Raw is as the API server has sent it.
func (o Object) IsLive() bool { return o.live }

// Record returns what counts of the records of the object.
func (o Object) Record() Record { return o.record }

// Version returns the resource version of Raw.
func (o Object) Version() string { return Version(o.raw) }

// Deleting reports whether Body is being deleted.
func (o Object) Deleting() bool { return object.Text(o.body, "metadata", "deletionTimestamp") != "" }

// HasFinalizer reports whether Body has a finalizer.
func (o Object) HasFinalizer(name string) bool {
	return slices.Contains(object.List(o.body, "metadata", "finalizers"), name)
}

// Version returns the resource version of an object, or "".
func Version(body object.Body) string { return object.Text(body, "metadata", "resourceVersion") }
