package reconciler

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/kindstore"
)

// books returns the object as the store of its kind knows it.
func (p *pass) books() kindstore.Object {
	created, _ := time.Parse(time.RFC3339, object.Text(p.seen.Body(), "metadata", "creationTimestamp")) // No object from an API server is without one.
	return kindstore.Object{Namespace: p.key.Namespace, UID: p.memory.uid, Name: p.key.String(), Created: created}
}

// noteRecorded notes that the object has a record.
func (p *pass) noteRecorded() { p.r.Store.Recorded(p.books()) }

// noteMissing notes that the object has no record. An object that is being deleted is never Lost and may never get a record, so it does not hold the
// watermark back.
func (p *pass) noteMissing() {
	if p.seen.Deleting() { // mutant: terminating-holds
		p.r.Store.Gone(p.key.Namespace, p.memory.uid)
		return
	}
	p.r.Store.Missing(p.books())
}

// settled reports whether the object must have had a record: it is covered by the watermark, and existed before this process
// saw it. An object that this process saw arrive had none, however late it arrived.
func (p *pass) settled() bool {
	if !p.memory.older { // mutant: late-arrival-is-lost
		return false
	}
	return p.r.Store.Covers(p.books()) // mutant: lost-is-created
}

// beginMove stores where the record is going to be.
func (p *pass) beginMove(ctx context.Context) error {
	return p.r.Store.BeginMove(ctx, p.key.Namespace, p.view.Description.Carrier, p.view.HidesRecords)
}
