package patch

import (
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// The numbers of writes that are not yet a conflict. innocentTurns are writes after those of another client, from which on the
// written values are kept for comparison. innocentFights are writes of a field that another client has changed since. One of either
// is forgotten after each forgetAfter. innocentChain are writes within chainWindow that handlers made because of a write of their
// own operator. The sixth such write within ten seconds is the first to be delayed.
const (
	innocentTurns  = 1
	innocentFights = 3
	forgetAfter    = time.Minute
	innocentChain  = 4
	chainWindow    = 10 * time.Second
)

// The pauses double from FirstPause to LongestPause while the conflict lasts.
const (
	FirstPause   = time.Second
	LongestPause = time.Minute
)

// Other clients' edits of fields that are not in conflict are handled without delay, but at most innocentEdits in a row. One is
// forgotten after each forgetEdit.
const (
	innocentEdits = 5
	forgetEdit    = 10 * time.Second
)

// Contest detects endless writes to one object: two clients that change a field in turn, or handlers of one operator that undo each
// other's changes. The caller reports the operator's writes. The zero value is ready to use.
type Contest struct {
	turns, fights, edits bucket
	// wrote is what the operator's last write left in each field, nil for an absent field. It is kept only after several turns.
	wrote map[string]any
	// chain holds the times of recent writes caused by the operator's own writes, and handlers the handlers that made them.
	chain    []time.Time
	handlers []string
	// fields are in conflict. chained means between handlers of this operator. The last pause lasted pause and ended at until.
	fields  []object.Path
	chained bool
	pause   time.Duration
	until   time.Time
}

// Turn notes that the operator is about to write after another client did. It returns the fields that both write, once the
// conflict has lasted long enough to be slowed down. News is true once per conflict.
func (c *Contest) Turn(base object.Body, edits []Edit, now time.Time) (fields []object.Path, news bool) {
	c.chain, c.handlers = nil, nil
	c.turns = c.turns.filled(now, forgetAfter)
	for _, touch := range Touches(edits) {
		left, known := c.wrote[touch.Path.String()]
		if known && !object.Equal(left, touch.in(base)) {
			fields = append(fields, touch.Path)
		}
	}
	if len(fields) == 0 {
		return nil, false
	}
	if c.fights = c.fights.filled(now, forgetAfter); c.fights.level <= innocentFights {
		return nil, false
	}
	c.chained = false
	return fields, c.brake(fields, now)
}

// Chain notes that handlers are about to write because of the operator's own last write. It returns the handlers that keep doing
// so, once they have to be slowed down. News is true once per conflict.
func (c *Contest) Chain(handlers []string, edits []Edit, now time.Time) (conflicting []string, news bool) {
	c.chain = append(slices.DeleteFunc(c.chain, func(at time.Time) bool { return now.Sub(at) >= chainWindow }), now)
	c.handlers = append(c.handlers, handlers...)
	slices.Sort(c.handlers)
	c.handlers = slices.Compact(c.handlers)
	if len(c.chain) <= innocentChain && (!c.chained || !c.recent(now)) { // mutant: own-loop-not-slowed
		return nil, false
	}
	c.chained = true
	var fields []object.Path
	for _, touch := range Touches(edits) {
		fields = append(fields, touch.Path)
	}
	return slices.Clone(c.handlers), c.brake(fields, now)
}

// brake starts the next pause. It reports whether the conflict is new.
func (c *Contest) brake(fields []object.Path, now time.Time) bool {
	again := c.recent(now)
	if again {
		c.pause = min(2*c.pause, LongestPause)
	} else {
		c.pause, c.fields = FirstPause, nil
	}
	c.until = now.Add(c.pause)
	for _, field := range fields {
		if !slices.ContainsFunc(c.fields, func(known object.Path) bool { return slices.Equal(known, field) }) {
			c.fields = append(c.fields, field)
		}
	}
	return !again
}

// recent reports whether the last conflict is still going on.
func (c *Contest) recent(now time.Time) bool {
	return c.pause > 0 && now.Before(c.until.Add(forgetAfter))
}

// Wrote notes the object as it is after the operator's write.
func (c *Contest) Wrote(answer object.Body, edits []Edit) {
	if c.turns.level <= innocentTurns {
		c.wrote = nil // An old value would be mistaken for that of the last write.
		return
	}
	if c.wrote == nil {
		c.wrote = map[string]any{}
	}
	for _, touch := range Touches(edits) {
		c.wrote[touch.Path.String()] = touch.in(answer)
	}
}

// Pause returns how long an object in conflict is left alone.
func (c *Contest) Pause() time.Duration { return c.pause }

// Exempt reports whether to handle the object during a pause, because other clients changed fields that are not in conflict.
func (c *Contest) Exempt(changed []object.Path, now time.Time) bool {
	beside := slices.ContainsFunc(changed, func(path object.Path) bool {
		return !slices.ContainsFunc(c.fields, func(field object.Path) bool { return path.Under(field...) || field.Under(path...) })
	})
	if !beside || c.edits.at(now, forgetEdit) >= innocentEdits {
		return false
	}
	c.edits = c.edits.filled(now, forgetEdit)
	return true
}

// bucket is a leaky bucket: it forgets one event per period.
type bucket struct {
	level float64
	since time.Time
}

func (b bucket) at(now time.Time, period time.Duration) float64 {
	return max(0, b.level-float64(now.Sub(b.since))/float64(period))
}

func (b bucket) filled(now time.Time, period time.Duration) bucket {
	return bucket{level: b.at(now, period) + 1, since: now}
}
