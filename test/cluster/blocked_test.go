package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// blockedDeletion has a condition of another client beside Einmal's. It must stay, although the Go type has no conditions.
func (w *world) blockedDeletion(t *testing.T) {
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase = "made"
			return nil
		})
		widgets.OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error {
			return einmal.Permanent(errors.New("no such account"))
		})
	})
	const name = "blocked"
	use := fixture.StatusCarrier()
	w.create(t, use, name)
	w.phase(t, name, "made")
	w.Kubectl(t, "", "patch", use.Resource, name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Theirs","status":"True"}]}}`)
	w.Kubectl(t, "", "delete", use.Resource, name, "--wait=false")
	cluster.Eventually(t, "the condition tells that the deletion is blocked", func(context.Context) error {
		const path = `jsonpath={.status.conditions[?(@.type=="DeletionBlocked")].status} {.status.conditions[?(@.type=="Theirs")].status}`
		if got := w.Kubectl(t, "", "get", use.Resource, name, "-o", path); got != "True True" {
			return fmt.Errorf("DeletionBlocked and Theirs are %q", got)
		}
		return nil
	})
	w.Kubectl(t, "", "annotate", use.Resource, name, fixture.Identity+"/release=unmake")
	w.vanished(t, use, name)
	fixture.ExpectLine(t, log, "msg~released by annotation")
	stop()
}
