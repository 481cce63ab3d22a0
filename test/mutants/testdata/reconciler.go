// Package reconciler: helper functions of mutants. Only the build of TestMutantsAreKilled contains this file.
package reconciler

import (
	"context"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// asMarked is the state of an object that has the finalizer already.
func (s *subject) asMarked() handler.State {
	state := s.state()
	state.Marked = true
	return state
}

// markLate adds the finalizer when the handlers have run.
func (l *loop) markLate(ctx context.Context) {
	_ = l.mark(ctx)
}

// saveEarly saves that a handler is done which has not run yet.
func (a caller) saveEarly(ctx context.Context, w *work, run handler.Run) {
	w.journal.Add(journal.Attempt{Run: run, Seen: w.journal.Current(), At: time.Now(), Result: handler.Result{Outcome: record.Done}}, nil)
	_ = a.flush(ctx, w)
}

// uncounted forgets the attempts.
func uncounted(found *record.Record) *record.Record {
	for id, entry := range found.Handlers {
		entry.Attempts = 0
		*found = found.With(id, entry)
	}
	return found
}

// replaceStatus writes the whole status as this pass knows it.
func (c committer) replaceStatus(ctx context.Context, edits []patch.Edit, text string) object.Body {
	edits = append(slices.Clone(edits), patch.Edit{Path: c.s.view.Description.Carrier.Path(c.s.r.Settings.Identity), Value: text})
	whole := patch.Operation{Op: "replace", Path: "/status", Value: patch.Apply(c.s.seen.Raw(), edits)["status"]}
	answer, _ := c.s.r.Server.Patch(ctx, c.s.key, journal.Status, []patch.Operation{whole})
	return answer
}

// withoutTests makes a patch unconditional, as a merge patch is.
func withoutTests(operations []patch.Operation) []patch.Operation {
	return slices.DeleteFunc(slices.Clone(operations), func(o patch.Operation) bool { return o.Op == "test" })
}
