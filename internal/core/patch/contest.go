package patch

import (
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// How many writes are no conflict yet, so that the brake begins at the sixth write within ten seconds. innocentTurns are writes upon
// those of another client, after which the values are kept that are compared; innocentFights are writes of a field that another
// client has changed since; one of either is forgotten in each forgetAfter. innocentChain are writes within chainWindow that
// handlers made because of a write of their own operator.
const (
	innocentTurns  = 1
	innocentFights = 3
	forgetAfter    = time.Minute
	innocentChain  = 4
	chainWindow    = 10 * time.Second
)

// The pauses double from the first to the longest as long as the conflict goes on.
const (
	FirstPause   = time.Second
	LongestPause = time.Minute
)

// Edits of others beside the conflict are handled at once, but no more than innocentEdits in a row; one is forgotten in each
// forgetEdit.
const (
	innocentEdits = 5
	forgetEdit    = 10 * time.Second
)

// Contest detects writes to one object that go on and on: two clients that change a field in turn, and handlers of one operator that
// undo each other. The caller reports the operator's writes. The zero value is ready.
type Contest struct {
	turns, fights, edits bucket
	// wrote is what our last write has left in each field, nil for nothing. It is kept once there were some turns.
	wrote map[string]any
	// chain are the times of recent writes that followed from our own, and handlers those that made them.
	chain    []time.Time
	handlers []string
	// fields are in conflict. chained: between handlers of this operator. The last pause took pause, and ended at until.
	fields  []object.Path
	chained bool
	pause   time.Duration
	until   time.Time
}

// Turn is told what we are about to write upon a version of somebody else. It returns the fields that both write, in a
// fight that has lasted for long enough to slow it down. News is true once for each fight.
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

// Chain notes that handlers are about to write because of the operator's own last write. It returns the handlers that do so again and again, if
// that has to be slowed down. News is true once for each conflict.
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

// brake begins the next pause. It reports whether the conflict is a new one.
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

// recent reports whether the last conflict goes on.
func (c *Contest) recent(now time.Time) bool {
	return c.pause > 0 && now.Before(c.until.Add(forgetAfter))
}

// Wrote is told what the object is after our write.
func (c *Contest) Wrote(answer object.Body, edits []Edit) {
	if c.turns.level <= innocentTurns {
		c.wrote = nil // What was left a while ago would be taken for what was left last.
		return
	}
	if c.wrote == nil {
		c.wrote = map[string]any{}
	}
	for _, touch := range Touches(edits) {
		c.wrote[touch.Path.String()] = touch.in(answer)
	}
}

// Pause is how long to leave an object alone that is fought over.
func (c *Contest) Pause() time.Duration { return c.pause }

// Exempt reports whether the object is to be handled during a pause, since others have changed fields that are not in conflict.
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

// bucket counts what happens too often: it forgets one in each period.
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
