package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/core/record"
)

func managed(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

// Another client has written a record if it owns the field and the operator does not. What counts is the place that the record is stored in: the
// deployment controller copies the record of a Deployment onto its ReplicaSets, which have their own one in another annotation.
func TestRecordOwnersTellWhoWroteTheRecord(t *testing.T) {
	const operator, other = "op.example.com", "kubectl"
	annotation, status := `{"f:metadata":{"f:annotations":{"f:op.example.com/record":{}}}}`, `{"f:status":{"f:records":{"f:op.example.com":{}}}}`
	apart := `{"f:metadata":{"f:annotations":{"f:apart.op.example.com/record":{}}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		carrier record.Carrier
		want    string
	}{
		"ours":                 {[]metav1.ManagedFieldsEntry{managed(operator, annotation)}, record.Annotation, ""},
		"another client's":     {[]metav1.ManagedFieldsEntry{managed(other, annotation)}, record.Annotation, other},
		"both":                 {[]metav1.ManagedFieldsEntry{managed(other, annotation), managed(operator, annotation)}, record.Annotation, ""},
		"in the status":        {[]metav1.ManagedFieldsEntry{managed(operator, annotation), managed(other, status)}, record.Status, other},
		"in the other carrier": {[]metav1.ManagedFieldsEntry{managed(operator, annotation), managed(other, status)}, record.Annotation, ""},
		"a copied one apart":   {[]metav1.ManagedFieldsEntry{managed(operator, apart), managed(other, annotation)}, record.SeparateAnnotation, ""},
		"another client's apart": {
			[]metav1.ManagedFieldsEntry{managed(other, apart), managed(operator, annotation)}, record.SeparateAnnotation, other,
		},
		"another field": {
			[]metav1.ManagedFieldsEntry{managed(operator, annotation), managed(other, `{"f:spec":{"f:size":{}}}`)}, record.Annotation, "",
		},
		"of another operator": {
			[]metav1.ManagedFieldsEntry{managed(other, `{"f:status":{"f:records":{"f:op.example.com.org":{}}}}`)}, record.Status, "",
		},
		"without managed fields": {nil, record.Annotation, ""},
	} {
		t.Run(name, func(t *testing.T) {
			owners := NewRecordOwners(operator)
			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ManagedFields: test.entries}}
			for range 2 { // client-go transforms some objects twice.
				if _, err := owners.Strip(one); err != nil || one.ManagedFields != nil {
					t.Fatal(err, one.ManagedFields)
				}
			}
			if got := owners.Other("u", test.carrier); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if owners.Forget("u"); owners.Other("u", test.carrier) != "" {
				t.Error("not forgotten")
			}
		})
	}
}
