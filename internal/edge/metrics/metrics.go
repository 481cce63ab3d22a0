// Package metrics counts what handlers do, on the registry that controller-runtime's own metrics are on. No label names
// an object: the number of series depends on what is declared, not on what there is in the cluster.
package metrics

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is one metric: its name, what kind of metric it is, its labels, and what it tells.
type Family struct {
	Name, Type string
	Labels     []string
	Help       string
}

// The kinds of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The places of the families in their list.
const (
	runs = iota
	durations
	retries
	refused
	pending
	lost
	conflicts
	dropped
	contradictions
	woken
	watches
	watchFailures
	daemons
	indexHolds
	indexFailed
)

// Families lists all metrics. The documentation shows the same list.
func Families() []Family {
	kind := []string{"operator", "kind"}
	handler := []string{"operator", "kind", "handler"}
	return append([]Family{
		runs: {
			Name: "einmal_handler_runs_total", Type: counter, Labels: slices.Concat(handler, []string{"reason", "outcome"}),
			Help: "Attempts of a handler that have ended, by the reason it was called for and by outcome: done, retry (failed, and tried again), waiting (it asked to be called later), failed (for good).",
		},
		durations: {
			Name: "einmal_handler_duration_seconds", Type: histogram, Labels: handler,
			Help: "How long attempts of a handler take.",
		},
		retries: {
			Name: "einmal_handler_retries_total", Type: counter, Labels: handler,
			Help: "Attempts after the first one.",
		},
		refused: {
			Name: "einmal_handler_refused_total", Type: counter, Labels: handler,
			Help: "Attempts whose changes of the object the API server did not accept. They are among the runs with the outcome that the handler itself had, and count as failures for the handler's retries.",
		},
		pending: {
			Name: "einmal_objects_pending", Type: gauge, Labels: kind,
			Help: "Objects that a handler is not finished with, or that could not be read or written. Those that failed for good are not among them.",
		},
		lost: {
			Name: "einmal_records_lost_total", Type: counter, Labels: kind,
			Help: "Objects whose record was lost while the operator was down.",
		},
		conflicts: {
			Name: "einmal_save_conflicts_total", Type: counter, Labels: kind,
			Help: "Writes that were made anew because somebody else had changed the object or its record meanwhile.",
		},
		dropped: {
			Name: "einmal_events_dropped_total", Type: counter, Labels: kind,
			Help: "Events of handlers that were not sent, because their object had had too many: 25 at once, and then one in five minutes.",
		},
		contradictions: {
			Name: "einmal_status_conflicts_total", Type: counter, Labels: slices.Concat(handler, []string{"earlier"}),
			Help: "Fields of the status that two handlers have set differently in one pass: the handler whose value stays, and the earlier one.",
		},
		woken: {
			Name: "einmal_handler_wakes_total", Type: counter, Labels: slices.Concat(handler, []string{"by"}),
			Help: "Changes of related objects that have woken a handler, by their kind. Several changes can lead to one run.",
		},
		watches: {
			Name: "einmal_watch_healthy", Type: gauge, Labels: []string{"operator", "resource", "namespace"},
			Help: "Whether the last request to watch a resource was answered: 1, or 0 as long as it is refused or does not arrive. The namespace is empty where all are watched at once.",
		},
		watchFailures: {
			Name: "einmal_watch_failures_total", Type: counter, Labels: []string{"operator", "resource", "namespace"},
			Help: "Requests to watch a resource that were refused or did not arrive. Each is tried again.",
		},
	}, besideHandlers(handler)...)
}

// besideHandlers are the last families: daemons, indexHolds and indexFailed.
func besideHandlers(handler []string) []Family {
	return []Family{
		{
			Name: "einmal_daemons", Type: gauge, Labels: slices.Concat(handler, []string{"state"}),
			Help: "Daemons that have not ended, by state: running, also when the next attempt is waited for, and abandoned (nobody waits for it any more, and it has not returned).",
		},
		{
			Name: "einmal_index_objects", Type: gauge, Labels: []string{"operator", "kind", "index"},
			Help: "Objects of which an index holds entries.",
		},
		{
			Name: "einmal_index_failures_total", Type: counter, Labels: []string{"operator", "kind", "index"},
			Help: "Attempts of the function of an index that failed.",
		},
	}
}

// Metrics are the metrics of all operators of a process. They are one collector.
type Metrics struct {
	counters  map[int]*prometheus.CounterVec
	durations *prometheus.HistogramVec
	gauges    map[int]*prometheus.GaugeVec
}

// Register gives the metrics on the registry. They are put there once, however many operators ask.
func Register(registry prometheus.Registerer) (*Metrics, error) {
	made := newMetrics()
	err := registry.Register(made)
	if already, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if existing, is := already.ExistingCollector.(*Metrics); is {
			return existing, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register the metrics, whose names begin with einmal_: %w", err)
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

// buckets reach from a handler that only looks to one that uses up the default deadline.
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

// Kind begins to count for a kind of an operator. What can be counted beside its handlers begins with 0, so that its first
// rise is seen.
func (m *Metrics) Kind(operator, kind string) *Kind {
	m.counters[lost].WithLabelValues(operator, kind)
	m.counters[conflicts].WithLabelValues(operator, kind)
	m.counters[dropped].WithLabelValues(operator, kind)
	m.gauges[pending].WithLabelValues(operator, kind).Set(0)
	return &Kind{metrics: m, operator: operator, kind: kind, pending: map[string]struct{}{}}
}

// Run is an attempt of a handler that has ended.
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

// Refused counts an attempt whose changes were not accepted.
func (k *Kind) Refused(handler string) {
	k.metrics.counters[refused].WithLabelValues(k.operator, k.kind, handler).Inc()
}

// Lost counts a lost record.
func (k *Kind) Lost() { k.metrics.counters[lost].WithLabelValues(k.operator, k.kind).Inc() }

// Conflict counts a write that is made anew.
func (k *Kind) Conflict() { k.metrics.counters[conflicts].WithLabelValues(k.operator, k.kind).Inc() }

// Dropped counts an event that was not sent.
func (k *Kind) Dropped() { k.metrics.counters[dropped].WithLabelValues(k.operator, k.kind).Inc() }

// Contradiction counts a field that a handler has set otherwise than an earlier one.
func (k *Kind) Contradiction(handler, earlier string) {
	k.metrics.counters[contradictions].WithLabelValues(k.operator, k.kind, handler, earlier).Inc()
}

// The states of daemons.
const (
	Running   = "running"
	Abandoned = "abandoned"
)

// Daemon counts daemons of a state: one more, or one less.
func (k *Kind) Daemon(handler, state string, more float64) {
	k.metrics.gauges[daemons].WithLabelValues(k.operator, k.kind, handler, state).Add(more)
}

// Woken counts that a change of a related object wakes a handler.
func (k *Kind) Woken(handler, by string) {
	k.metrics.counters[woken].WithLabelValues(k.operator, k.kind, handler, by).Inc()
}

// Pending notes that an object is not finished with.
func (k *Kind) Pending(object string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending[object] = struct{}{}
	k.tellPending()
}

// Settled notes that nothing is pending of an object.
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

// Close ends the counting: this process does not know any more what is pending.
func (k *Kind) Close() { k.metrics.gauges[pending].DeleteLabelValues(k.operator, k.kind) }

// Watch notes an answer to a request of an operator's watch in a namespace, or in all if that is "", with what is wrong with it;
// "" for nothing.
func (m *Metrics) Watch(operator, resource, namespace, complaint string) {
	healthy := 1.0
	if complaint != "" {
		healthy = 0
		m.counters[watchFailures].WithLabelValues(operator, resource, namespace).Inc()
	}
	m.gauges[watches].WithLabelValues(operator, resource, namespace).Set(healthy)
}

// Unwatched notes that an operator does not watch a resource any more.
func (m *Metrics) Unwatched(operator, resource string) {
	m.gauges[watches].DeletePartialMatch(prometheus.Labels{"operator": operator, "resource": resource})
}

// UnwatchedIn notes that an operator does not watch a resource any more in a namespace.
func (m *Metrics) UnwatchedIn(operator, resource, namespace string) {
	m.gauges[watches].DeleteLabelValues(operator, resource, namespace)
}

// Index counts for one index of one operator.
type Index struct {
	metrics *Metrics
	labels  []string
}

// Index begins to count for an index of an operator.
func (m *Metrics) Index(operator, kind, id string) *Index {
	x := &Index{metrics: m, labels: []string{operator, kind, id}}
	m.counters[indexFailed].WithLabelValues(x.labels...)
	x.Holds(0)
	return x
}

// Holds tells of how many objects there are entries.
func (x *Index) Holds(objects int) {
	x.metrics.gauges[indexHolds].WithLabelValues(x.labels...).Set(float64(objects))
}

// Failed counts an attempt that failed.
func (x *Index) Failed() { x.metrics.counters[indexFailed].WithLabelValues(x.labels...).Inc() }
