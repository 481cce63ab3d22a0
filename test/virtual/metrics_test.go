package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/test/fixture"
)

// metered is the operator of the tests of metrics: no other test counts under its name.
const metered = "metered.einmal.dev"

// samples are the lines of /metrics that are about the operator, but for those of times.
func samples(tb testing.TB, operator string) []string {
	tb.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(crmetrics.Registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/metrics", nil))
	boring := regexp.MustCompile(`^einmal_|(?:operator|kind)="[^"]*",?`)
	var found []string
	for line := range strings.Lines(answer.Body.String()) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "einmal_") && strings.Contains(line, `operator="`+operator+`"`) && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
			found = append(found, strings.Replace(strings.Replace(boring.ReplaceAllString(line, ""), ",}", "}", 1), "{}", "", 1))
		}
	}
	return found
}

// declareMetered declares handlers that succeed, that fail twice, that fail for good, that wait, and one of events.
func declareMetered(op *einmal.Operator) {
	widgets := einmal.For[fixture.Widget](op)
	nothing := func(context.Context, *einmal.Change[fixture.Widget]) error { return nil }
	widgets.OnEvent("watch", nothing)
	widgets.OnCreate("make", nothing)
	widgets.OnCreate("stumble", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		if c.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	widgets.OnCreate("fail", func(context.Context, *einmal.Change[fixture.Widget]) error { return einmal.Permanent(errors.New("no")) })
	widgets.OnCreate("wait", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		if c.Object.Spec.Size == 0 {
			return einmal.RequeueAfter(time.Hour)
		}
		return nil
	})
}

// Metrics by handler: runs, failures, duration, retries and pending objects.
func TestHandlersAreCounted(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("fail", "wait")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(metered, einmal.StateNamespace("default"), einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()))
			declareMetered(op)
			return op
		})
		w.Advance(time.Second) // The first list is over.
		made := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
		w.Create(made, &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "two"}})
		w.Advance(time.Minute)
		expectSamples(w,
			`handler_runs_total{handler="make",outcome="done",reason="create"} 2`,
			`handler_runs_total{handler="stumble",outcome="retry",reason="create"} 4`,
			`handler_runs_total{handler="stumble",outcome="done",reason="create"} 2`,
			`handler_runs_total{handler="fail",outcome="failed",reason="create"} 2`,
			`handler_runs_total{handler="wait",outcome="waiting",reason="create"} 2`,
			`handler_runs_total{handler="watch",outcome="done",reason="added"} 2`,
			`handler_retries_total{handler="stumble"} 4`,
			`handler_duration_seconds_count{handler="stumble"} 6`,
			`objects_pending 2`,
			`records_lost_total 0`, `save_conflicts_total 0`,
		)
		w.Patch(made, `{"spec":{"size":1}}`)
		w.Advance(2 * time.Hour)
		expectSamples(w, `objects_pending 1`)
		w.Stop()
		if err := w.Client().Status().Patch(w.Context(), made, client.RawPatch(types.MergePatchType, []byte(`{"status":{"records":null}}`))); err != nil {
			w.Fatal(err)
		}
		w.Restart()
		w.Advance(time.Minute)
		expectSamples(w, `records_lost_total 1`)
	})
}

// Writes that are repeated after a conflict, and writes that the API server rejects, are counted.
func TestConflictsAndRefusalsAreCounted(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(metered+".more", einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()))
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("meet", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				if c.Attempt > 1 {
					return nil
				}
				c.Object.Labels = map[string]string{"not a label": "!"}
				other := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: c.Object.Name}}
				merge := client.RawPatch(types.MergePatchType, []byte(`{"status":{"records":{"`+metered+`.more":"{}"}}}`))
				return w.Client().Status().Patch(ctx, other, merge)
			})
			return op
		})
		w.Create(&fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(time.Minute)
		expectSamplesOf(w, metered+".more", `save_conflicts_total 1`, `handler_refused_total{handler="meet"} 1`)
	})
}

func expectSamples(tb testing.TB, want ...string) {
	tb.Helper()
	expectSamplesOf(tb, metered, want...)
}

func expectSamplesOf(tb testing.TB, operator string, want ...string) {
	tb.Helper()
	found := samples(tb, operator)
	for _, line := range want {
		if !slices.Contains(found, line) {
			tb.Errorf("there is no %s in\n%s", line, strings.Join(found, "\n"))
		}
	}
}

// docs/metrics.md has each metric, as it is.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, family := range metrics.Families() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", family.Name, family.Type, strings.Join(family.Labels, ", "), family.Help)
	}
	if !strings.HasSuffix(string(page), "|---|---|---|---|\n"+table.String()) {
		t.Errorf("docs/metrics.md does not end with the table of what there is:\n%s", &table)
	}
}
