package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// fieldAtCreation shows on the real control plane that a field handler does not take a creation for a change.
func (w *world) fieldAtCreation(t *testing.T) {
	j := &fixture.Journal{}
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) { fixture.Provision(widgets, j) })
	w.Kubectl(t, strings.Replace(fixture.StatusCarrier().Manifest("acme", 1), "size: 1", "size: 1, color: standard", 1), "create", "-f", "-")
	w.called(t, fixture.StatusCarrier(), j, "acme", "provision")
	w.phase(t, "acme", "ready")
	w.edit(t, fixture.StatusCarrier(), "acme", "color", "large")
	w.called(t, fixture.StatusCarrier(), j, "acme", "provision", `plan from "standard" to "large"`)
	stop()
	w.delete(t, fixture.StatusCarrier(), "acme")
}

// leftAlone shows scenarios 48 and 49 on the real control plane.
func (w *world) leftAlone(t *testing.T) {
	j := &fixture.Journal{}
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) { fixture.OfTeam(widgets, j) })
	use := fixture.StatusCarrier()
	w.spend(t, use, "a life that no handler is for (scenario 48)", 0, func() {
		w.create(t, use, "theirs")
		w.edit(t, use, "theirs", "size", int64(2))
		w.edit(t, use, "theirs", "label", "b")
		w.delete(t, use, "theirs")
	})
	w.create(t, use, "ours")
	w.spend(t, use, "it starts to match (scenario 49): finalizer and record", 2, func() {
		w.edit(t, use, "ours", "label", "a")
		w.called(t, use, j, "ours", "make (create, attempt 1)")
	})
	w.edit(t, use, "ours", "size", int64(2))
	want := []string{"make (create, attempt 1)", "resize (update, attempt 1)"}
	w.called(t, use, j, "ours", want...)
	w.edit(t, use, "ours", "label", "b")
	cluster.Eventually(t, "the finalizer goes with the label", func(ctx context.Context) error {
		found, err := w.get(ctx, use, "ours")
		if err == nil && len(found.GetFinalizers()) > 0 {
			err = fmt.Errorf("finalizers %q", found.GetFinalizers())
		}
		return err
	})
	w.delete(t, use, "ours")
	if got := j.Of("ours"); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	stop()
}
