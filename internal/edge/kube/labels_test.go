package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// withTemplate returns an object with a selector, and labels in its template that a field manager has applied.
func withTemplate(apiVersion, kind string, selector, labels object.Body, manager string) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: object.Body{
		"apiVersion": apiVersion, "kind": kind, "metadata": object.Body{"name": "one"},
		"spec": object.Body{"selector": selector, "template": object.Body{"metadata": object.Body{"labels": labels}}},
	}}
	template.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:team":{},"f:instance":{}}}}}}`),
	}})
	return template
}

// A template gets a tracking label if the selector requires it. Labels that an earlier Apply has set there stay if the selector requires them, or if the
// template is immutable.
func TestLabelsInTemplates(t *testing.T) {
	expression := func(operator string) object.Body {
		return object.Body{"matchExpressions": []any{object.Body{"key": "instance", "operator": operator}}}
	}
	deployment := func(selector object.Body) *unstructured.Unstructured {
		return withTemplate("apps/v1", "Deployment", selector, nil, "")
	}
	earlier := object.Body{"team": "old", "instance": "old", "others": "yes"}
	for name, test := range map[string]struct {
		child, existing *unstructured.Unstructured
		want            map[string]string
	}{
		"no selector":               {deployment(nil), nil, map[string]string{"team": "a"}},
		"matchLabels":               {deployment(object.Body{"matchLabels": object.Body{"instance": "shop"}}), nil, map[string]string{"team": "a", "instance": "shop"}},
		"In":                        {deployment(expression("In")), nil, map[string]string{"team": "a", "instance": "shop"}},
		"Exists":                    {deployment(expression("Exists")), nil, map[string]string{"team": "a", "instance": "shop"}},
		"NotIn":                     {deployment(expression("NotIn")), nil, map[string]string{"team": "a"}},
		"of ReplicationControllers": {deployment(object.Body{"instance": "shop"}), nil, map[string]string{"team": "a", "instance": "shop"}},
		"existing": {
			deployment(expression("Exists")), withTemplate("apps/v1", "Deployment", nil, earlier, "ours"),
			map[string]string{"team": "a", "instance": "old"},
		},
		"existing, of others": {
			deployment(expression("Exists")), withTemplate("apps/v1", "Deployment", nil, earlier, "theirs"),
			map[string]string{"team": "a", "instance": "shop"},
		},
		"existing Job": {
			withTemplate("batch/v1", "Job", nil, nil, ""), withTemplate("batch/v1", "Job", nil, earlier, "ours"),
			map[string]string{"team": "old", "instance": "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			children := Children{Manager: "ours", Labels: Labels{
				Paths:  []object.Path{{"spec", "template"}},
				Nested: map[string]string{"team": "a"}, Selected: map[string]string{"instance": "shop"},
			}}
			if err := children.label(test.child, test.existing); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedStringMap(test.child.Object, "spec", "template", "metadata", "labels")
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("labels in the template, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
