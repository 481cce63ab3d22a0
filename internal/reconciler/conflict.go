package reconciler

import (
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
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

// countConflict counts a write that conflicts with another client's, or that handlers make because of our own last write. A pass counts once.
func (p *pass) countConflict(w *work, edits []patch.Edit) {
	if p.counted || p.memory.ours == "" || len(edits) == 0 {
		return
	}
	now := time.Now()
	var field object.Path
	if p.memory.ours == p.seen.Version() {
		made := w.journal.Edits()
		if !p.chained || len(made) == 0 {
			return
		}
		p.memory.conflicts.followOwn(now)
		field = made[0].Path
	} else if conflicting, ok := p.memory.conflicts.followOther(p.seen.Raw(), edits, now); ok {
		field = conflicting
	}
	p.counted = true
	if field == nil || p.memory.conflicts.heldUntil(now).IsZero() || !p.memory.conflicts.slowDown(now) {
		return
	}
	p.report.Log.Warn("conflicting writes of a field, slowing down", "field", field.String(), "pause", conflictInterval.String(),
		"remedy", "let only one writer set the field")
}

// followsOwnWrite reports whether handlers are about to run because of our own last write: no other client has changed the object since, and
// they neither retry nor answer a related object.
func (p *pass) followsOwnWrite() bool {
	if p.memory.ours == "" || p.memory.ours != p.seen.Version() {
		return false
	}
	woken := p.r.State.Objects.Triggered(p.key)
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool {
		return run.Attempt == 1 && !run.Waited && (run.Reason == cause.Update || run.Reason == cause.Reconcile && !woken[run.ID])
	})
}

// conflictPause returns until when conflicting writes hold the object back, or the zero time. A deletion does not wait.
func (p *pass) conflictPause() time.Time {
	if p.seen.Deleting() {
		return time.Time{}
	}
	return p.memory.conflicts.heldUntil(time.Now())
}
