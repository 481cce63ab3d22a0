package explore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A life in which the number of children goes up and down and others disturb them ends with the wanted children, whatever goes wrong.
func TestWhateverGoesWrongOnlyWantedChildrenRemain(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		fixture.StartParts(w)
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		for _, size := range []int{3, 1, 2} {
			w.Patch(fixture.NewWidget("one"), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
			w.Advance(time.Minute)
		}
		w.Delete(fixture.NewConfigMap("one-1", 0))
		w.Advance(10 * time.Minute) // The operator can have been down.
		if diff := cmp.Diff([]string{"one-0", "one-1"}, fixture.ConfigMaps(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	}, einmaltest.NoSpareRights())
}
