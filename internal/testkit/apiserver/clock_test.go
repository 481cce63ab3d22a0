package apiserver_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// stamps are the times that the server set on an object.
type stamps struct {
	Created, Deleted string
	// Managed is when each manager wrote, in the object's order.
	Managed []string
}

func stampsOf(object client.Object) stamps {
	found := stamps{Created: object.GetCreationTimestamp().UTC().Format(time.TimeOnly)}
	if deleted := object.GetDeletionTimestamp(); deleted != nil {
		found.Deleted = deleted.UTC().Format(time.TimeOnly)
	}
	for _, entry := range object.GetManagedFields() {
		found.Managed = append(found.Managed, entry.Manager+" "+entry.Time.UTC().Format(time.TimeOnly))
	}
	return found
}

// CreationTimestamp is the server's; watermarks have a margin since clocks differ.
func TestObjectsAreStampedWithTheServersClock(t *testing.T) {
	midnight := time.Date(2040, 2, 3, 0, 0, 0, 0, time.UTC)
	now := midnight
	server := start(t, apiserver.WithDefinitions(definitions(t)), apiserver.WithClock(func() time.Time { return now }))
	defer server.Close()
	api := clientOf(t, server)
	expect := func(step string, object client.Object, want stamps) {
		t.Helper()
		if diff := cmp.Diff(want, stampsOf(object)); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	one := thing("one")
	one.SetFinalizers([]string{"tests.einmal.dev/held"})
	merge := func(writer, spec string) {
		t.Helper()
		if err := api.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(spec)), client.FieldOwner(writer)); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Create(t.Context(), one, client.FieldOwner("maker")); err != nil {
		t.Fatal(err)
	}
	expect("created", one, stamps{Created: "00:00:00", Managed: []string{"maker 00:00:00"}})

	now = midnight.Add(-time.Hour)
	merge("earlier", `{"metadata":{"labels":{"a":"1"}}}`)
	changed := stamps{Created: "00:00:00", Managed: []string{"earlier 23:00:00", "maker 00:00:00"}}
	expect("changed after the clock was set back", one, changed)

	now = midnight.Add(time.Hour)
	merge("earlier", `{"metadata":{"labels":{"a":"1"}}}`)
	expect("a write that changes nothing", one, changed)
	applied := thing("one")
	applied.SetAnnotations(map[string]string{"b": "2"})
	if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier")); err != nil {
		t.Fatal(err)
	}
	changed.Managed = append([]string{"applier 01:00:00"}, changed.Managed...)
	expect("applied", applied, changed)

	now = midnight.Add(2 * time.Hour)
	if err := api.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		t.Fatal(err)
	}
	changed.Deleted = "02:00:00"
	expect("deleted", one, changed)
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
