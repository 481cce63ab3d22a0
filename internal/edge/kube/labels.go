package kube

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Labels are the labels of the owner that Apply adds to a child, where the child has none of the same name.
type Labels struct {
	// Child are the labels for the child itself.
	Child map[string]string
	// Paths are the paths of objects within the child that get labels too.
	Paths []object.Path
	// Nested are the labels for these objects.
	Nested map[string]string
	// Selected are labels for these objects too, but only where the selector of the child names them. Without them, the API server would refuse a new
	// child.
	Selected map[string]string
}

// label adds labels to the child, and to the objects within it.
func (c Children) label(child, existing *unstructured.Unstructured) error {
	child.SetLabels(merged(c.Labels.Child, child.GetLabels()))
	for _, path := range c.Labels.Paths {
		at := slices.Concat(path, object.Path{"metadata", "labels"})
		own, _, err := unstructured.NestedStringMap(child.Object, at...)
		if err != nil {
			return fmt.Errorf("copy the labels of the owner: %w", err)
		}
		if labels := merged(c.nested(child, existing, path), own); len(labels) > 0 {
			if err := unstructured.SetNestedStringMap(child.Object, labels, at...); err != nil {
				return fmt.Errorf("copy the labels of the owner: %w", err)
			}
		}
	}
	c.replaceLastLabel(child, existing)
	return nil
}

// replaceLastLabel gives a Job one label if it would lose the last of those that an earlier Apply has set. The API server gives a Job without labels
// those of its template, which is immutable and so still has what was copied into it.
func (c Children) replaceLastLabel(child, existing *unstructured.Unstructured) {
	if existing == nil || existing.GroupVersionKind().GroupKind() != jobKind() || len(child.GetLabels()) > 0 {
		return
	}
	if len(c.appliedLabels(existing, object.Path{"metadata", "labels"})) > 0 {
		child.SetLabels(map[string]string{batchv1.JobNameLabel: child.GetName()})
	}
}

func jobKind() schema.GroupKind { return schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"} }

// nested returns the labels that an object within the child gets. The API server refuses another label in an immutable template, and one that no
// longer matches the selector. So the labels that an earlier Apply has set there stay as they are in the existing child.
func (c Children) nested(child, existing *unstructured.Unstructured, path object.Path) map[string]string {
	earlier := c.appliedLabels(existing, slices.Concat(path, object.Path{"metadata", "labels"}))
	if existing != nil && hasImmutableTemplate(existing.GroupVersionKind().GroupKind()) {
		return earlier // mutant: immutable-template-relabeled
	}
	labels := maps.Clone(c.Labels.Nested)
	if labels == nil {
		labels = make(map[string]string)
	}
	for key := range selectorKeys(child.Object, path[:len(path)-1]) {
		for _, from := range []map[string]string{c.Labels.Selected, earlier} {
			if value, is := from[key]; is {
				labels[key] = value
			}
		}
	}
	return labels
}

// hasImmutableTemplate reports whether the API server refuses every change of the template of an existing object.
func hasImmutableTemplate(kind schema.GroupKind) bool {
	return kind == jobKind() || kind == schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}
}

// selectorKeys returns the keys of the labels that an object must have to match the selector beside it.
func selectorKeys(child object.Body, beside object.Path) map[string]bool {
	at := func(path ...string) []string { return slices.Concat(beside, object.Path{"selector"}, path) }
	keys := make(map[string]bool)
	for key, value := range object.Map(child, at()...) { // Of a ReplicationController.
		if _, isText := value.(string); isText {
			keys[key] = true
		}
	}
	for key := range object.Map(child, at("matchLabels")...) {
		keys[key] = true
	}
	expressions, _ := object.Get(child, at("matchExpressions")...)
	list, _ := expressions.([]any)
	for _, one := range list {
		expression, _ := one.(object.Body)
		switch object.Text(expression, "operator") {
		case string(metav1.LabelSelectorOpIn), string(metav1.LabelSelectorOpExists):
			keys[object.Text(expression, "key")] = true
		}
	}
	return keys
}

// appliedLabels returns those of the labels at a path of an object that an earlier Apply has set.
func (c Children) appliedLabels(existing *unstructured.Unstructured, at object.Path) map[string]string {
	if existing == nil {
		return nil
	}
	applied := make(map[string]string)
	labels, _, _ := unstructured.NestedStringMap(existing.Object, at...)
	for _, entry := range existing.GetManagedFields() {
		if entry.Manager != c.Manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		for key, value := range labels {
			if fields.Has(fieldPath(at.Child(key))) {
				applied[key] = value
			}
		}
	}
	return applied
}

// fieldPath returns a path in the form of managed fields.
func fieldPath(path object.Path) fieldpath.Path {
	converted := make(fieldpath.Path, len(path))
	for i := range path {
		converted[i].FieldName = &path[i]
	}
	return converted
}

// merged returns the union of two maps. Values of the second take precedence.
func merged(one, other map[string]string) map[string]string {
	all := make(map[string]string, len(one)+len(other))
	maps.Copy(all, one)
	maps.Copy(all, other)
	return all
}
