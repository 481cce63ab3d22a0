package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 83, second half, on the real control plane: a new schema is read within seconds, because watches end with the old one.
func TestANewDefaultTriggersNoHandlerOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	j := &fixture.Journal{}
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) { fixture.AllVerbs(widgets, j) })
	w.create(t, fixture.StatusCarrier(), "one")
	want := []string{"make 1", "look 1", "guard"}
	cluster.Until(t, "all begins", func() bool { return slices.Equal(j.Of("one"), want) })
	w.spend(t, fixture.StatusCarrier(), "a new default", 0, func() {
		w.Kubectl(t, "", "patch", "crd", fixture.WidgetCRD, "--type=json", "-p", fixture.RedByDefault)
		begun := time.Now()
		cluster.Until(t, "the schema is read", func() bool { return log.Count("msg=schema of kind changed") > 0 })
		t.Logf("the schema is read %s after it has changed", time.Since(begun).Round(time.Millisecond))
	})
	w.edit(t, fixture.StatusCarrier(), "one", "size", int64(7))
	want = append(want, "change [{change [spec size] 1 7}]", "look 1")
	cluster.Until(t, "the edit is handled", func() bool { return len(j.Of("one")) >= len(want) })
	w.quiet(t, fixture.StatusCarrier())
	if diff := cmp.Diff(want, j.Of("one")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	stop()
}
