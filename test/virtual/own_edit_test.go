package virtual_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// ownEdit is the log message about a handler that changes its own object outside of the status.
const ownEdit = `msg="handler changes its own object outside of the status, which can fight GitOps tools"`

// A handler that changes the spec or the metadata of its own object is reported once in each process, not for each object. Its changes are written as
// before.
func TestAHandlerThatChangesItsOwnSpecIsReportedOnce(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("grow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec = fixture.WidgetSpec{Size: 7, Color: "red", Tags: []string{"grown"}}
			c.Object.Labels = map[string]string{"grown": "yes"}
			c.Object.Status.Phase = "grown"
			return nil
		})
		widgets.OnCreate("label", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return einmal.Step(ctx, c, "set", func(context.Context) error {
				c.Object.Labels["size"] = fmt.Sprint(c.Object.Spec.Size)
				return nil
			})
		})
		widgets.OnCreate("report", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase = "reported"
			return nil
		})
		widgets.Daemon("paint", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec.Color = "blue"
			if err := c.Sync(ctx); err != nil {
				return err
			}
			return untilStopped(ctx, c)
		}, einmal.WithoutFinalizer())
	}, func(t *testing.T, w *virtualWorld) {
		for _, name := range []string{"one", "two"} {
			fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget(name)))
			w.Pass(time.Minute)
			found := &fixture.Widget{}
			fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewWidget(name)), found))
			if found.Spec.Size != 7 || found.Spec.Color != "blue" || found.Labels["size"] != "7" || found.Status.Phase != "reported" {
				t.Errorf("%s is %+v with the labels %v", name, found.Spec, found.Labels)
			}
		}
	})
	var told []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "level=WARN "+ownEdit) {
			_, attributes, _ := strings.Cut(line, "handler=")
			told = append(told, strings.TrimSpace(attributes))
		}
	}
	slices.Sort(told)
	want := []string{
		`grow fields="[metadata.labels.grown spec.color spec.size]"`, "label fields=[metadata.labels.size]", "paint fields=[spec.color]",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
