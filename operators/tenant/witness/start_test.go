package witness

import (
	"context"
	"slices"
	"testing"
)

// instant is a target that answers at once.
type instant struct{}

func (instant) String() string { return "instant" }

func (instant) attempt(context.Context) error { return nil }

func (instant) reason(error) Reason { return Other }

// The first logins end while the last targets are still being added: the race detector checks that this is safe.
func TestLoginsThatEndAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	watching := Start(t.Context(), slices.Repeat([]Target{instant{}}, 200)...)
	for watching.Report().Logins() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("no login is counted")
		}
	}
	if seen := watching.Stop(); seen.Failures() > 0 {
		t.Errorf("it saw:\n%s", seen)
	}
}
