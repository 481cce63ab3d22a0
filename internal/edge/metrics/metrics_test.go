package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// Several operators share a process, and a test creates many: all use the same metrics.
func TestOperatorsShareOneRegistration(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, operator := range []string{"a.example.com", "b.example.com", "a.example.com"} {
		m, err := metrics.Register(registry)
		if err != nil {
			t.Fatal(err)
		}
		m.Kind(operator, "Widget.example.com").Lost()
	}
	for _, want := range []string{
		`einmal_records_lost_total{kind="Widget.example.com",operator="a.example.com"} 2`,
		`einmal_records_lost_total{kind="Widget.example.com",operator="b.example.com"} 1`,
	} {
		if text, _ := shown(t, registry); !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// shown returns what /metrics shows, and the number of series.
func shown(t *testing.T, registry *prometheus.Registry) (text string, series int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&written, family); err != nil {
			t.Fatal(err)
		}
		series += len(family.GetMetric())
	}
	return written.String(), series
}

func TestANameThatIsTakenIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: metrics.Families()[0].Name, Help: "another"}))
	if _, err := metrics.Register(registry); err == nil || !strings.Contains(err.Error(), "einmal_") {
		t.Errorf("got %v", err)
	}
}

// The number of series does not depend on the number of objects.
func TestSeriesDoNotGrowWithObjects(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.Register(registry)
	if err != nil {
		t.Fatal(err)
	}
	kind := m.Kind("a.example.com", "Widget.example.com")
	index := m.Index("a.example.com", "Widget.example.com", "by-size")
	use := func(object string) {
		kind.Pending(object)
		kind.Ran(metrics.Run{Handler: "make", Reason: "create", Outcome: "done", Attempt: 2, Took: time.Second})
		kind.Conflict()
		kind.Refused("make")
		kind.Contradiction("make", "other")
		kind.Woken("make", "ConfigMap")
		kind.Daemon("guard", metrics.Running, 1)
		m.Watch("a.example.com", "widgets.example.com", "", "refused")
		m.Undecodable("a.example.com", "Widget.example.com", 1)
		index.Failed()
		index.Holds(1)
	}
	use("default/first")
	for i := range 100 {
		use(fmt.Sprint("default/", i))
	}
	if text, series := shown(t, registry); series != len(metrics.Families()) {
		t.Errorf("%d series, want one for each metric:\n%s", series, text)
	}
	kind.Settled("default/first")
	const want = `einmal_objects_pending{kind="Widget.example.com",operator="a.example.com"} 100`
	if text, _ := shown(t, registry); !strings.Contains(text, want+"\n") {
		t.Errorf("%s is missing in\n%s", want, text)
	}
	kind.Close()
	if text, _ := shown(t, registry); strings.Contains(text, "einmal_objects_pending") {
		t.Errorf("the gauge of pending objects is still shown:\n%s", text)
	}
}
