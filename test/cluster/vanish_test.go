package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The operator waits for a kind, serves it when it appears, and stops quietly when it disappears; other kinds are not affected.
func TestDefinitionsComeAndGoOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	t.Run("a definition comes, is deleted under load, and comes back (scenario 82)", w.comesAndGoes)
}

func (w *world) comesAndGoes(t *testing.T) {
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	w.Kubectl(t, "", "delete", "crd", fixture.WidgetCRD)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	widgets := einmal.For[fixture.Widget](op)
	widgets.OnCreate("make", fixture.Done(j, "make"))
	widgets.OnDelete("unmake", fixture.Done(j, "unmake"))
	sizes := einmal.Index(op, "sizes", func(widget *fixture.Widget) (map[string]int, error) {
		return map[string]int{widget.Name: widget.Spec.Size}, nil
	})
	widgets.Reconcile("look", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		if found := sizes.Get(c.Object.Name); len(found) != 1 {
			t.Errorf("the index has %v", found)
		}
		return nil
	})
	gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
	gadgets.OnCreate("other", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		j.Add(c.Object.GetName(), "other")
		return nil
	})
	stop := w.run(t, op, w.account)
	says := func(words string, times int) {
		t.Helper()
		cluster.Until(t, words, func() bool { return log.Count("msg="+words) == times })
	}
	says("kind not served, waiting for it", 1)
	w.define(t)
	w.create(t, fixture.StatusCarrier(), "first")
	w.called(t, fixture.StatusCarrier(), j, "first", "make 1")
	ended := w.load(t)
	w.Kubectl(t, "", "delete", "crd", fixture.WidgetCRD)
	says("kind no longer served, handlers paused until it returns", 1)
	ended()
	w.create(t, fixture.Carriers()[1], "meanwhile")
	w.called(t, fixture.Carriers()[1], j, "meanwhile", "other")
	before := len(log.String())
	<-time.After(3 * time.Second) // While the kind is gone, nothing is said of it.
	if said := log.String()[before:]; strings.Count(said, "\n") > 2 {
		t.Errorf("while the kind is gone the log says\n%s", said)
	}
	w.define(t)
	w.create(t, fixture.StatusCarrier(), "first")
	w.called(t, fixture.StatusCarrier(), j, "first", "make 1", "unmake 1", "make 1")
	w.delete(t, fixture.StatusCarrier(), "first")
	if got := j.Of("first"); !slices.Equal(got, []string{"make 1", "unmake 1", "make 1", "unmake 1"}) {
		t.Errorf("calls %q", got)
	}
	stop()
	w.delete(t, fixture.Carriers()[1], "meanwhile")
}

// define installs the definitions of the test kinds.
func (w *world) define(t *testing.T) {
	t.Helper()
	w.Kubectl(t, string(fixture.CRDs()), "apply", "-f", "-")
	w.Kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all")
}

// load creates widgets, one after the other, until it is ended. When their definition is gone, they are refused.
func (w *world) load(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			widget := fixture.NewUntypedWidget(fmt.Sprintf("load-%d", n))
			_ = w.Create(ctx, widget) // It is refused when the definition is gone.
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
