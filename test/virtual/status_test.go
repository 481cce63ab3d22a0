package virtual_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Two handlers write one status, with all faults that make a field vanish: a field that the schema does not have, two writers that apply under
// one name, and a whole status from an old state.
func TestTwoHandlersAndOneStatus(t *testing.T) {
	log := fixture.NewLog(t)
	var other fixture.Others
	virtually(t, log, func(op *einmal.Operator) { fixture.TwoWriters(op, func() fixture.Others { return other }) },
		func(t *testing.T, w *virtualWorld) {
			other = fixture.Others{Client: w.User}
			act := func() { w.Pass(time.Minute) }
			fixture.ExpectNothingLost(t.Context(), t, other, func(string) { act() }, act)
		})
	fixture.ExpectMistakeLogged(t, log)
}
