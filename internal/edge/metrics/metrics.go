// Package metrics counts what handlers do, in the registry of controller-runtime. No label names an object, so that the number of series
// depends only on what the operator declares, and not on the number of objects in the cluster.
package metrics

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family describes one metric: its name, type, labels and help text.
type Family struct {
	Name, Type string
	Labels     []string
	Help       string
}

// The types of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The indexes of the families in their list.
const (
	runs = iota
	durations
	retries
	refused
	pending
	lost
	conflicts
	contradictions
	woken
	watches
	watchFailures
	daemons
	indexHolds
	indexFailed
	undecodable
)

// Families lists all metrics. The documentation shows the same list.
func Families() []Family {
	kind := []string{"operator", "kind"}
	handler := []string{"operator", "kind", "handler"}
	return append([]Family{
		runs: {
			Name: "einmal_handler_runs_total", Type: counter, Labels: slices.Concat(handler, []string{"reason", "outcome"}),
			Help: "Finished attempts of a handler, by reason and outcome: done, retry (failed, will be retried), waiting (asked to be called later), failed (permanently).",
		},
		durations: {
			Name: "einmal_handler_duration_seconds", Type: histogram, Labels: handler,
			Help: "Duration of the attempts of a handler.",
		},
		retries: {
			Name: "einmal_handler_retries_total", Type: counter, Labels: handler,
			Help: "Attempts after the first one.",
		},
		refused: {
			Name: "einmal_handler_refused_total", Type: counter, Labels: handler,
			Help: "Attempts whose changes to the object were rejected by the API server. They are also counted as runs, with the outcome of the handler itself, and count as failed attempts for retries.",
		},
		pending: {
			Name: "einmal_objects_pending", Type: gauge, Labels: kind,
			Help: "Objects that a handler has not finished, or that could not be read or written. Permanent failures do not count.",
		},
		lost: {
			Name: "einmal_records_lost_total", Type: counter, Labels: kind,
			Help: "Objects whose record was lost while the operator was down.",
		},
		conflicts: {
			Name: "einmal_save_conflicts_total", Type: counter, Labels: kind,
			Help: "Writes that were repeated because another client had changed the object or its record.",
		},
		contradictions: {
			Name: "einmal_status_conflicts_total", Type: counter, Labels: slices.Concat(handler, []string{"earlier"}),
			Help: "Status fields that two handlers set to different values in one reconciliation: by the handler whose value was kept, and the earlier one.",
		},
		woken: {
			Name: "einmal_handler_wakes_total", Type: counter, Labels: slices.Concat(handler, []string{"by"}),
			Help: "Changes of related objects that triggered a handler, by the kind of these objects. Several changes can lead to one run.",
		},
		watches: {
			Name: "einmal_watch_healthy", Type: gauge, Labels: []string{"operator", "resource", "namespace"},
			Help: "1 if the last request to watch a resource succeeded, 0 if it was rejected or did not reach the API server. The namespace is empty if one watch covers all namespaces.",
		},
		watchFailures: {
			Name: "einmal_watch_failures_total", Type: counter, Labels: []string{"operator", "resource", "namespace"},
			Help: "Requests to watch a resource that were rejected or did not reach the API server. Each is retried.",
		},
	}, besideHandlers(handler)...)
}

// besideHandlers returns the last families: daemons, indexHolds, indexFailed and undecodable.
func besideHandlers(handler []string) []Family {
	return []Family{
		{
			Name: "einmal_daemons", Type: gauge, Labels: slices.Concat(handler, []string{"state"}),
			Help: "Daemons that have not ended, by state: running (including those that wait for the next attempt) and abandoned (the operator no longer waits for it, but it has not returned).",
		},
		{
			Name: "einmal_index_objects", Type: gauge, Labels: []string{"operator", "kind", "index"},
			Help: "Objects with entries in an index.",
		},
		{
			Name: "einmal_index_failures_total", Type: counter, Labels: []string{"operator", "kind", "index"},
			Help: "Failed calls of the function of an index.",
		},
		{
			Name: "einmal_objects_undecodable", Type: gauge, Labels: []string{"operator", "kind"},
			Help: "Objects that do not fit the Go type of their kind. No handler runs for them. The log and an event on each object name the field.",
		},
	}
}

// Metrics holds the metrics of all operators of a process. It is one collector.
type Metrics struct {
	counters  map[int]*prometheus.CounterVec
	durations *prometheus.HistogramVec
	gauges    map[int]*prometheus.GaugeVec
}

// Register returns the metrics of the registry. They are registered once, even if several operators call it.
func Register(registry prometheus.Registerer) (*Metrics, error) {
	made := newMetrics()
	err := registry.Register(made)
	if already, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if existing, is := already.ExistingCollector.(*Metrics); is {
			return existing, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register metrics named einmal_*: %w", err)
	}
	return made, nil
}

func newMetrics() *Metrics {
	m := &Metrics{counters: map[int]*prometheus.CounterVec{}, gauges: map[int]*prometheus.GaugeVec{}}
	for at, family := range Families() {
		switch family.Type {
		case histogram:
			m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: family.Name, Help: family.Help, Buckets: buckets(),
			}, family.Labels)
		case gauge:
			m.gauges[at] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: family.Name, Help: family.Help}, family.Labels)
		default:
			m.counters[at] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: family.Name, Help: family.Help}, family.Labels)
		}
	}
	return m
}

// buckets range from a handler that only reads to one that uses up the default timeout of an attempt.
func buckets() []float64 {
	return []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 120, 300, 600}
}

func (m *Metrics) collectors() []prometheus.Collector {
	all := []prometheus.Collector{m.durations}
	for _, one := range m.gauges {
		all = append(all, one)
	}
	for _, one := range m.counters {
		all = append(all, one)
	}
	return all
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, one := range m.collectors() {
		one.Describe(to)
	}
}

// Collect sends the values of all metrics.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, one := range m.collectors() {
		one.Collect(to)
	}
}

// Kind counts for one kind of one operator.
type Kind struct {
	metrics        *Metrics
	operator, kind string

	mu      sync.Mutex
	pending map[string]struct{}
}

// Kind starts to count for a kind of an operator. The counters without a handler label start at 0, so that their first increase is visible.
func (m *Metrics) Kind(operator, kind string) *Kind {
	m.counters[lost].WithLabelValues(operator, kind)
	m.counters[conflicts].WithLabelValues(operator, kind)
	m.gauges[pending].WithLabelValues(operator, kind).Set(0)
	return &Kind{metrics: m, operator: operator, kind: kind, pending: map[string]struct{}{}}
}

// Run is a finished attempt of a handler.
type Run struct {
	Handler, Reason, Outcome string
	// Attempt counts from 1.
	Attempt int
	Took    time.Duration
}

// Ran counts an attempt.
func (k *Kind) Ran(run Run) {
	k.metrics.counters[runs].WithLabelValues(k.operator, k.kind, run.Handler, run.Reason, run.Outcome).Inc()
	k.metrics.durations.WithLabelValues(k.operator, k.kind, run.Handler).Observe(run.Took.Seconds())
	if run.Attempt > 1 {
		k.metrics.counters[retries].WithLabelValues(k.operator, k.kind, run.Handler).Inc()
	}
}

// Refused counts an attempt whose changes were rejected.
func (k *Kind) Refused(handler string) {
	k.metrics.counters[refused].WithLabelValues(k.operator, k.kind, handler).Inc()
}

// Lost counts a lost record.
func (k *Kind) Lost() { k.metrics.counters[lost].WithLabelValues(k.operator, k.kind).Inc() }

// Conflict counts a write that is repeated.
func (k *Kind) Conflict() { k.metrics.counters[conflicts].WithLabelValues(k.operator, k.kind).Inc() }

// Contradiction counts a status field that a handler set to a different value than an earlier handler.
func (k *Kind) Contradiction(handler, earlier string) {
	k.metrics.counters[contradictions].WithLabelValues(k.operator, k.kind, handler, earlier).Inc()
}

// The states of daemons.
const (
	Running   = "running"
	Abandoned = "abandoned"
)

// Daemon changes the number of daemons in a state by more.
func (k *Kind) Daemon(handler, state string, more float64) {
	k.metrics.gauges[daemons].WithLabelValues(k.operator, k.kind, handler, state).Add(more)
}

// Woken counts a change of a related object that triggers a handler.
func (k *Kind) Woken(handler, by string) {
	k.metrics.counters[woken].WithLabelValues(k.operator, k.kind, handler, by).Inc()
}

// Pending adds an object to those that are not finished.
func (k *Kind) Pending(object string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending[object] = struct{}{}
	k.tellPending()
}

// Settled removes an object from those that are not finished.
func (k *Kind) Settled(object string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, was := k.pending[object]; was {
		delete(k.pending, object)
		k.tellPending()
	}
}

func (k *Kind) tellPending() {
	k.metrics.gauges[pending].WithLabelValues(k.operator, k.kind).Set(float64(len(k.pending)))
}

// Close removes the gauge of pending objects, because this process no longer knows them.
func (k *Kind) Close() { k.metrics.gauges[pending].DeleteLabelValues(k.operator, k.kind) }

// Watch records the result of a watch request of an operator, in one namespace or, if it is "", in all. Failure says what is wrong, or
// is "".
func (m *Metrics) Watch(operator, resource, namespace, failure string) {
	healthy := 1.0
	if failure != "" {
		healthy = 0
		m.counters[watchFailures].WithLabelValues(operator, resource, namespace).Inc()
	}
	m.gauges[watches].WithLabelValues(operator, resource, namespace).Set(healthy)
}

// Unwatched records that an operator no longer watches a resource.
func (m *Metrics) Unwatched(operator, resource string) {
	m.gauges[watches].DeletePartialMatch(prometheus.Labels{"operator": operator, "resource": resource})
}

// UnwatchedIn records that an operator no longer watches a resource in a namespace.
func (m *Metrics) UnwatchedIn(operator, resource, namespace string) {
	m.gauges[watches].DeleteLabelValues(operator, resource, namespace)
}

// Undecodable sets the number of objects of a kind that cannot be decoded.
func (m *Metrics) Undecodable(operator, kind string, count int) {
	m.gauges[undecodable].WithLabelValues(operator, kind).Set(float64(count))
}

// Index counts for one index of one operator.
type Index struct {
	metrics *Metrics
	labels  []string
}

// Index starts to count for an index of an operator.
func (m *Metrics) Index(operator, kind, id string) *Index {
	x := &Index{metrics: m, labels: []string{operator, kind, id}}
	m.counters[indexFailed].WithLabelValues(x.labels...)
	x.Holds(0)
	return x
}

// Holds sets the number of objects with entries.
func (x *Index) Holds(objects int) {
	x.metrics.gauges[indexHolds].WithLabelValues(x.labels...).Set(float64(objects))
}

// Failed counts a failed call.
func (x *Index) Failed() { x.metrics.counters[indexFailed].WithLabelValues(x.labels...).Inc() }
