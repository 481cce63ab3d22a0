package kube

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// What is readable of the metadata stays, whatever else is wrong with an object. Users cannot set the mark.
func TestTheMetadataOfAnObjectThatCannotBeDecodedIsKept(t *testing.T) {
	tolerance := NewTolerance()
	source := tolerance.source(nil, &corev1.ConfigMap{})
	for text, field := range map[string]string{
		`{"metadata":{"namespace":"n","name":"one","uid":"u","finalizers":["f"],"annotations":{"a":"b"}},"data":5}`:                "data",
		`{"metadata":{"namespace":"n","name":"one","uid":"u","finalizers":["f"],"annotations":{"a":"b"},"labels":{"app":["x"]}}}`:  "metadata.labels.app",
		`{"metadata":{"namespace":"n","name":"one","uid":"u","finalizers":["f"],"annotations":{"a":"b"},"creationTimestamp":"x"}}`: "metadata.creationTimestamp",
		`{"metadata":{"namespace":"n","name":"one","uid":"u","finalizers":["f"],"annotations":{"a":"b"},"generation":1.5}}`:        "metadata.generation",
	} {
		var replaced corev1.ConfigMap
		if err := json.Unmarshal(source.replace([]byte(text), watch.Added), &replaced); err != nil {
			t.Fatal(err)
		}
		failure, is := errors.AsType[*UndecodableError](error(tolerance.Failure(&replaced)))
		if !is || failure.Field != field {
			t.Errorf("%s: the failure is %v", text, failure)
		}
		if replaced.Namespace != "n" || replaced.Name != "one" || replaced.UID != "u" || len(replaced.Finalizers) != 1 || replaced.Annotations["a"] != "b" {
			t.Errorf("%s: the metadata is %+v", text, replaced.ObjectMeta)
		}
		if other := NewTolerance().Failure(&replaced); other != nil {
			t.Errorf("another process reads the mark: %v", other)
		}
	}
	if len(source.replaced) != 1 {
		t.Errorf("replaced: %v", source.replaced)
	}
	const good = `{"metadata":{"namespace":"n","name":"one"},"data":{"a":"b"}}`
	if got := string(source.replace([]byte(good), watch.Modified)); got != good || len(source.replaced) != 0 {
		t.Errorf("%s, replaced: %v", got, source.replaced)
	}
	if failure := tolerance.Failure(&metav1.PartialObjectMetadata{}); failure != nil {
		t.Errorf("an object without a mark failed: %v", failure)
	}
}
