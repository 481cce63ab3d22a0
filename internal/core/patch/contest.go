package patch

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Two writers that fight over a field: how many writes in turn with somebody else are nothing to look into, how many
// writes of a field that somebody else has changed since are no fight yet, and how long it takes until one of either is
// forgotten. Once there is a fight it goes on at that pace.
const (
	innocentTurns  = 3
	innocentWrites = 5
	forgetAfter    = time.Minute
)

// Contest tells two writers that fight over a field from one that follows the other. It is about one object, and is told
// of our writes upon those of somebody else. The zero value is ready.
type Contest struct {
	turns, fights bucket
	// wrote is what our last write has left in each field, nil for nothing. It is kept once there were some turns.
	wrote map[string]any
	told  bool
}

// Turn is told what we are about to write upon a version of somebody else. It returns the fields that both write, in a
// fight that has lasted for long enough to slow it down. News is true once for each fight.
func (c *Contest) Turn(base object.Body, edits []Edit, now time.Time) (fields []object.Path, news bool) {
	c.turns = c.turns.filled(now)
	for _, touch := range Touches(edits) {
		left, known := c.wrote[touch.Path.String()]
		if known && !object.Equal(left, touch.in(base)) {
			fields = append(fields, touch.Path)
		}
	}
	if len(fields) == 0 {
		return nil, false
	}
	if c.fights.at(now) < 1 {
		c.told = false
	}
	if c.fights = c.fights.filled(now); c.fights.level <= innocentWrites {
		return nil, false
	}
	news, c.told = !c.told, true
	return fields, news
}

// Wrote is told what the object is after our write.
func (c *Contest) Wrote(answer object.Body, edits []Edit) {
	if c.turns.level <= innocentTurns {
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
func (*Contest) Pause() time.Duration { return forgetAfter }

// bucket counts what happens too often: it forgets one each forgetAfter.
type bucket struct {
	level float64
	since time.Time
}

func (b bucket) at(now time.Time) float64 {
	return max(0, b.level-float64(now.Sub(b.since))/float64(forgetAfter))
}

func (b bucket) filled(now time.Time) bucket { return bucket{level: b.at(now) + 1, since: now} }
