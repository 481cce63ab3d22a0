package apiserver_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// Objects get the times of their creation and deletion from the server: watermarks have a margin since clocks differ.
func TestObjectsAreStampedWithTheServersClock(t *testing.T) {
	midnight := time.Date(2040, 2, 3, 0, 0, 0, 0, time.UTC)
	now := midnight
	server := start(t, apiserver.WithDefinitions(definitions(t)), apiserver.WithClock(func() time.Time { return now }))
	defer server.Close()
	api := clientOf(t, server)
	one := thing("one")
	one.SetFinalizers([]string{"tests.einmal.dev/held"})
	create(t, api, one)
	now = midnight.Add(-time.Hour) // The clock is set back.
	one.SetLabels(map[string]string{"a": "1"})
	if err := api.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	now = midnight.Add(2 * time.Hour)
	if err := api.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		t.Fatal(err)
	}
	if made, deleted := one.GetCreationTimestamp(), one.GetDeletionTimestamp(); !made.Time.Equal(midnight) || deleted == nil || !deleted.Time.Equal(now) {
		t.Errorf("created at %s, deleted at %v, want %s and %s", made, deleted, midnight, now)
	}
}

func TestADefinitionIsEstablishedByTheServersClock(t *testing.T) {
	at := time.Date(2040, 2, 3, 0, 0, 0, 0, time.UTC)
	server := start(t, apiserver.WithDefinitions(definitions(t)), apiserver.WithClock(func() time.Time { return at }))
	defer server.Close()
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := clientOf(t, server).List(t.Context(), found); err != nil || len(found.Items) == 0 {
		t.Fatalf("%d definitions, %v", len(found.Items), err)
	}
	conditions, _, err := unstructured.NestedSlice(found.Items[0].Object, "status", "conditions")
	if err != nil || len(conditions) == 0 {
		t.Fatalf("%v, %v", conditions, err)
	}
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if want := at.Format(time.RFC3339); fields["lastTransitionTime"] != want {
			t.Errorf("%v since %v, want %s", fields["type"], fields["lastTransitionTime"], want)
		}
	}
}
