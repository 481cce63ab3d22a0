package einmaltest

import (
	"log/slog"
	"time"

	"github.com/einmal-operators/einmal"
)

// NewChange returns a Change for a test that calls one handler as a plain function. Its Reason is ReasonCreate, Attempt is 1, Log discards
// everything. Set the fields that the handler uses beside Object, such as Reason, Diff or Client:
//
//	change := einmaltest.NewChange(&website)
//	change.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
//	err := register(t.Context(), change)
//
// Outside of an operator nothing is recorded: steps and effects run each time, events are dropped, Sync does nothing, Old is empty, and
// Apply needs Client, with a RESTMapper such as testrestmapper.TestOnlyStaticRESTMapper returns. To test what happens across restarts, use Run or Explore.
func NewChange[T any](object *T) *einmal.Change[T] {
	return &einmal.Change[T]{
		Object: object, Reason: einmal.ReasonCreate, Attempt: 1, Started: time.Now(), Log: slog.New(slog.DiscardHandler),
	}
}
