package einmal_test

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal"
)

// testGroup is the API group of the kinds of these tests (testdata/crds.yaml).
const testGroup = "test.einmal.dev"

// Widget is a typed kind with room for records in its status.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size  int      `json:"size,omitempty"`
	Color string   `json:"color,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

type WidgetStatus struct {
	einmal.Records `json:",inline"`

	Phase string `json:"phase,omitempty"`
}

// DeepCopyObject copies the widget.
func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Tags = slices.Clone(w.Spec.Tags)
	copied.Status.Records.Records = maps.Clone(w.Status.Records.Records)
	return &copied
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject copies the list.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		if item, is := l.Items[i].DeepCopyObject().(*Widget); is {
			copied.Items[i] = *item
		}
	}
	return &copied
}

func addTestKinds(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: testGroup, Version: "v1"}
	scheme.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

// carrier is one way to keep records, and a kind that keeps them so.
type carrier struct {
	name, kind, resource string
	// writes gives the figure for this carrier out of a budget for status and annotation.
	writes  func(status, annotation int) int
	declare func(op *einmal.Operator, plan plan)
}

// carriers are both ways to keep records: a typed kind with records in the status, and an untyped one with records in
// an annotation.
func carriers() []carrier {
	return []carrier{
		{
			name: "status", kind: "Widget", resource: "widgets",
			writes: func(status, _ int) int { return status },
			declare: func(op *einmal.Operator, plan plan) {
				declare(einmal.For[Widget](op), plan, func(w *Widget) string { return w.Name },
					func(w *Widget, phase string) { w.Status.Phase = phase })
			},
		},
		{
			name: "annotation", kind: "Gadget", resource: "gadgets",
			writes: func(_, annotation int) int { return annotation },
			declare: func(op *einmal.Operator, plan plan) {
				kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", "Gadget"))
				declare(kind, plan, (*unstructured.Unstructured).GetName,
					func(u *unstructured.Unstructured, phase string) {
						_ = unstructured.SetNestedField(u.Object, phase, "status", "phase")
					})
			},
		},
	}
}
