package reconciler

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// The limit of conflicting writes to one object: conflictBurst at once, and then one in each conflictInterval. Writes that are
// more than turnWindow apart do not conflict.
const (
	conflictBurst    = 5
	conflictInterval = 10 * time.Second
	turnWindow       = time.Minute
)

// conflicts limits the writes to one object that undo each other or cause each other (docs/decisions/0010). The zero value is ready to use.
type conflicts struct {
	// fields limits writes of fields that another client has changed since the operator wrote them. own limits writes that handlers
	// make because of the operator's own last write. Both are nil before the first such write.
	fields, own *rate.Limiter
	// lastTurn is the time of the last write that followed one of another client. wrote is what the operator has left in each field
	// since, nil for an absent field. It is nil until a second such write follows, so that it needs no memory for most objects.
	lastTurn time.Time
	wrote    map[string]any
	// slowed is when a write emptied a bucket last.
	slowed time.Time
}

// followOther counts a write that follows one of another client. It returns a field that both write, and false if there is none.
func (c *conflicts) followOther(base object.Body, edits []patch.Edit, now time.Time) (object.Path, bool) {
	again := now.Sub(c.lastTurn) < turnWindow
	c.lastTurn, c.own = now, nil
	if !again {
		c.wrote = nil
		return nil, false
	}
	if c.wrote == nil {
		c.wrote = map[string]any{}
	}
	for _, touch := range patch.Touches(edits) {
		left, known := c.wrote[touch.Path.String()]
		if known && !object.Equal(left, touch.In(base)) {
			count(&c.fields, now)
			return touch.Path, true
		}
	}
	return nil, false
}

// followOwn counts a write that handlers make because of the operator's own last write.
func (c *conflicts) followOwn(now time.Time) {
	count(&c.own, now) // mutant: own-loop-not-slowed
}

func count(limit **rate.Limiter, now time.Time) {
	if *limit == nil {
		*limit = rate.NewLimiter(rate.Every(conflictInterval), conflictBurst)
	}
	(*limit).AllowN(now, 1)
}

// note keeps what a write has left in the fields that it changed.
func (c *conflicts) note(answer object.Body, edits []patch.Edit) {
	if c.wrote == nil {
		return
	}
	for _, touch := range patch.Touches(edits) {
		c.wrote[touch.Path.String()] = touch.In(answer)
	}
}

// heldUntil returns when the next write is allowed, or the zero time if it is allowed now.
func (c *conflicts) heldUntil(now time.Time) time.Time {
	var until time.Time
	for _, limit := range []*rate.Limiter{c.fields, c.own} {
		if limit == nil {
			continue
		}
		missing := 1 - limit.TokensAt(now)
		if at := now.Add(time.Duration(missing * float64(conflictInterval))); missing > 0 && at.After(until) {
			until = at
		}
	}
	return until
}

// slowDown notes that a conflict slows writes down, and reports whether it is a new one.
func (c *conflicts) slowDown(now time.Time) bool {
	isNew := now.Sub(c.slowed) > turnWindow
	c.slowed = now
	return isNew
}

// countConflict counts a write that conflicts with another client's, or that handlers make because of our own last write. A reconciliation counts once.
func (c committer) countConflict(w *work, edits []patch.Edit) {
	if c.s.counted || c.s.memory.ours == "" || len(edits) == 0 {
		return
	}
	now := time.Now()
	var field object.Path
	if c.s.memory.ours == c.s.seen.Version() {
		made := w.journal.Edits()
		if !c.s.chained || len(made) == 0 {
			return
		}
		c.s.memory.conflicts.followOwn(now)
		field = made[0].Path
	} else if conflicting, ok := c.s.memory.conflicts.followOther(c.s.seen.Raw(), edits, now); ok {
		field = conflicting
	}
	c.s.counted = true
	if field == nil || c.s.memory.conflicts.heldUntil(now).IsZero() || !c.s.memory.conflicts.slowDown(now) {
		return
	}
	c.s.report.Log.Warn("conflicting writes of a field, slowing down", "field", field.String(), "pause", conflictInterval.String(),
		"remedy", "let only one writer set the field")
}
