package kube

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// EventSink writes Kubernetes events for client-go's event recorder. A nil sink drops them.
type EventSink struct{ core typedcorev1.EventSinkImpl }

// NewEventSink returns a sink that sends requests through the HTTP client. The error says what the configuration lacks.
func NewEventSink(config *rest.Config, through *http.Client) (*EventSink, error) {
	core, err := typedcorev1.NewForConfigAndClient(config, through)
	if err != nil {
		return nil, fmt.Errorf("make the client for events: %w", err)
	}
	return &EventSink{core: typedcorev1.EventSinkImpl{Interface: core.Events(corev1.NamespaceAll)}}, nil
}

// Record returns a recorder whose events name the component as their source. It counts, combines and limits them with client-go's correlator.
// After stop, it sends no further events.
func (s *EventSink) Record(component string) (recorder record.EventRecorder, stop func()) {
	broadcaster := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{Clock: &risingClock{}}))
	if s != nil {
		broadcaster.StartRecordingToSink(s)
	}
	return broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: component}), broadcaster.Shutdown
}

// Create creates an event. The recorder names events by their object and time. Two of the same nanosecond, which occur with coarse clocks and
// in virtual time, differ in a suffix.
func (s *EventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	created, err := s.core.Create(event)
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	const suffixLength = 8
	renamed := event.DeepCopy()
	renamed.Name += "-" + rand.String(suffixLength)
	return s.core.Create(renamed)
}

// Update replaces an event.
func (s *EventSink) Update(event *corev1.Event) (*corev1.Event, error) { return s.core.Update(event) }

// Patch changes an event, such as its count.
func (s *EventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.core.Patch(event, data)
}

// risingClock returns each time once only. The correlator names combined events by the time, and finds them by this name later, so Create must
// not rename them.
type risingClock struct{ last time.Time }

// Now returns the present time, or the nanosecond after the last one.
func (c *risingClock) Now() time.Time {
	now := time.Now()
	if !now.After(c.last) {
		now = c.last.Add(time.Nanosecond)
	}
	c.last = now
	return now
}

// Since returns how long ago a time was.
func (c *risingClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }
