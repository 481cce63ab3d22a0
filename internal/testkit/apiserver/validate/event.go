package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The longest texts in an event.
const (
	shortText = 128
	longText  = 1024
)

// CoreEvent checks an event in the form of the core group.
func CoreEvent(object, _ *corev1.Event) field.ErrorList {
	namespace := field.NewPath("involvedObject", "namespace")
	mismatch := field.Invalid(namespace, object.InvolvedObject.Namespace, "does not match event.namespace")
	clusterWide := object.InvolvedObject.Namespace == ""
	if object.EventTime.IsZero() {
		if clusterWide {
			return when(object.Namespace != "" && object.Namespace != metav1.NamespaceDefault, mismatch)
		}
		return when(object.Namespace != object.InvolvedObject.Namespace, mismatch)
	}
	refused := when(clusterWide && object.Namespace != metav1.NamespaceDefault && object.Namespace != metav1.NamespaceSystem, mismatch)
	return append(refused, validateReport("reportingComponent", report{
		controller: object.ReportingController, instance: object.ReportingInstance,
		action: object.Action, reason: object.Reason, note: object.Message,
	})...)
}

// report is what both forms of events tell.
type report struct{ controller, instance, action, reason, note string }

func validateReport(controller string, r report) field.ErrorList {
	var refused field.ErrorList
	for _, must := range []struct {
		name, value string
		limit       int
	}{
		{controller, r.controller, shortText},
		{"reportingInstance", r.instance, shortText},
		{"action", r.action, shortText},
		{"reason", r.reason, shortText},
	} {
		path := field.NewPath(must.name)
		refused = append(refused, when(must.value == "", field.Required(path, ""))...)
		if must.name == controller && must.value == "" {
			refused = append(refused, field.Invalid(path, "", "name part must be non-empty"))
		}
		refused = append(refused, when(len(must.value) > must.limit && must.name != controller,
			field.Invalid(path, "", fmt.Sprintf("can have at most %d characters", must.limit)))...)
	}
	return append(refused, when(len(r.note) > longText,
		field.Invalid(field.NewPath("message"), "", fmt.Sprintf("can have at most %d characters", longText)))...)
}

// Event checks an event in the form of events.k8s.io.
func Event(object, old *eventsv1.Event) field.ErrorList {
	var refused field.ErrorList
	if !object.EventTime.IsZero() {
		refused = validateReport("reportingController", report{
			controller: object.ReportingController, instance: object.ReportingInstance,
			action: object.Action, reason: object.Reason, note: object.Note,
		})
	}
	if series := object.Series; series != nil && (old == nil || old.Series == nil || *old.Series != *series) {
		refused = append(refused, when(series.Count < 2, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))...)
		refused = append(refused, when(series.LastObservedTime.IsZero(), field.Required(field.NewPath("series.lastObservedTime"), ""))...)
	}
	if old == nil {
		refused = append(refused, when(object.EventTime.IsZero(), field.Required(field.NewPath("eventTime"), ""))...)
		return append(refused, when(object.Type != corev1.EventTypeNormal && object.Type != corev1.EventTypeWarning,
			field.Invalid(field.NewPath("type"), "", "has invalid value: "+object.Type))...)
	}
	for _, fixed := range []struct {
		name    string
		is, was any
	}{
		{"involvedObject", object.Regarding, old.Regarding},
		{"reason", object.Reason, old.Reason},
		{"message", object.Note, old.Note},
		{"type", object.Type, old.Type},
		{"action", object.Action, old.Action},
		{"reportingController", object.ReportingController, old.ReportingController},
		{"reportingInstance", object.ReportingInstance, old.ReportingInstance},
	} {
		refused = append(refused, metavalidation.ValidateImmutableField(fixed.is, fixed.was, field.NewPath(fixed.name))...)
	}
	return refused
}
