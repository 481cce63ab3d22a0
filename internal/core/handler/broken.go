package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// broken reports whether a programming error keeps the handler from another attempt in this process. An edit of the object ends that, since the
// handler may do something else then. A related object does not: the handler could trigger itself without end by what it writes to its children.
func (d *decision) broken(declared Declaration, entry record.Entry) bool {
	same := d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
	return d.state.Broken[declared.ID] && entry.Outcome == record.Retry && same && !d.answered(entry)
}

// counted returns the entry of a failed attempt with its number, for the limits. An attempt that failed because of a programming error does
// not count: otherwise a limit could make the failure final before a repaired release has run the handler.
func counted(entry record.Entry, run Run, result Result) record.Entry {
	if entry.Attempts = run.Attempt; result.Broken {
		entry.Attempts, entry.Started = run.Attempt-1, time.Time{}
	}
	return entry
}
