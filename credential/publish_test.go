package credential_test

import (
	"context"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// frozen is a client whose first write waits until something else has happened, as in a process that is frozen between its read and its write.
type frozen struct {
	client.Client

	before func()
}

func (f frozen) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	f.before()
	return f.Client.Update(ctx, object, options...)
}

func (f frozen) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	f.before()
	return f.Client.Create(ctx, object, options...)
}

// A writer that is frozen between its look at the copy for readers and its write does not publish an older generation over a newer one.
func TestAFrozenWriterDoesNotPublishAnOlderGeneration(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	for name, before := range map[string]int{"where there is a copy": 1, "where there is none": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, api := apiserver.Start(t)
			store := credential.Secrets{Client: api, Namespace: "default"}
			var records []credential.Record
			for generation := 1; generation <= 3; generation++ {
				record := credential.Record{Username: "app", Password: credential.NewPassword("some"), Generation: generation}
				if err := store.Create(t.Context(), "app-db", testOwner(), record); err != nil {
					t.Fatal(err)
				}
				records = append(records, record)
			}
			publish := func(store credential.Secrets, generation int) error {
				return store.Publish(t.Context(), "app-db", testOwner(), records[generation-1])
			}
			if before > 0 {
				if err := publish(store, before); err != nil {
					t.Fatal(err)
				}
			}
			late := credential.Secrets{Namespace: "default", Client: frozen{api, sync.OnceFunc(func() {
				if err := publish(store, 3); err != nil {
					t.Error(err)
				}
			})}}
			if err := publish(late, 2); err == nil {
				t.Error("the late writer got no error")
			}
			found, err := store.Read(t.Context(), "app-db", testOwner(), 1)
			if err != nil || found.Published != 3 {
				t.Errorf("readers get generation %d, want 3: %v", found.Published, err)
			}
		})
	}
}
