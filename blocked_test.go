package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// blockedDeletion has a condition of another client beside Einmal's. It must stay, although the Go type has no conditions.
func (w *world) blockedDeletion(t *testing.T) {
	stop, log := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
			c.Object.Status.Phase = "made"
			return nil
		})
		widgets.OnDelete("unmake", func(context.Context, *einmal.Change[Widget]) error {
			return einmal.Permanent(errors.New("no such account"))
		})
	})
	const name = "blocked"
	use := typedCarrier()
	w.create(t, use, name)
	w.phase(t, name, "made")
	w.Kubectl(t, "", "patch", use.resource, name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Theirs","status":"True"}]}}`)
	w.Kubectl(t, "", "delete", use.resource, name, "--wait=false")
	cluster.Eventually(t, "the condition tells that the deletion is blocked", func(context.Context) error {
		const path = `jsonpath={.status.conditions[?(@.type=="DeletionBlocked")].status} {.status.conditions[?(@.type=="Theirs")].status}`
		if got := w.Kubectl(t, "", "get", use.resource, name, "-o", path); got != "True True" {
			return fmt.Errorf("DeletionBlocked and Theirs are %q", got)
		}
		return nil
	})
	w.Kubectl(t, "", "annotate", use.resource, name, testIdentity+"/release=unmake")
	w.vanished(t, use, name)
	tells(t, log, "msg~released by annotation")
	stop()
}
