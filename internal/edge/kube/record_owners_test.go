package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managed(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

// Another client has written the record if it owns the field and the operator does not.
func TestRecordOwnersTellWhoWroteTheRecord(t *testing.T) {
	const operator, other = "op.example.com", "kubectl"
	annotation, status := `{"f:metadata":{"f:annotations":{"f:op.example.com/record":{}}}}`, `{"f:status":{"f:records":{"f:op.example.com":{}}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"ours":                   {[]metav1.ManagedFieldsEntry{managed(operator, annotation)}, ""},
		"another client's":       {[]metav1.ManagedFieldsEntry{managed(other, annotation)}, other},
		"both":                   {[]metav1.ManagedFieldsEntry{managed(other, annotation), managed(operator, annotation)}, ""},
		"in the status":          {[]metav1.ManagedFieldsEntry{managed(operator, annotation), managed(other, status)}, other},
		"another field":          {[]metav1.ManagedFieldsEntry{managed(operator, annotation), managed(other, `{"f:spec":{"f:size":{}}}`)}, ""},
		"of another operator":    {[]metav1.ManagedFieldsEntry{managed(other, `{"f:status":{"f:records":{"f:op.example.com.org":{}}}}`)}, ""},
		"without managed fields": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			owners := NewRecordOwners(operator)
			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ManagedFields: test.entries}}
			for range 2 { // client-go transforms some objects twice.
				if _, err := owners.Strip(one); err != nil || one.ManagedFields != nil {
					t.Fatal(err, one.ManagedFields)
				}
			}
			if got := owners.Other("u"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if owners.Forget("u"); owners.Other("u") != "" {
				t.Error("not forgotten")
			}
		})
	}
}
