package journal_test

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// resizing is a kind with a handler of updates.
func resizing() handler.Kind {
	return handler.Kind{Handlers: []handler.Declaration{{ID: "resize", Verb: cause.Update}}}
}

// Two processes have run the same handler, and the other one has stored its result first. If the handler has failed here, what it says of that is older.
func TestWhatAFailedAttemptSaysDoesNotOverwriteASuccessElsewhere(t *testing.T) {
	sized := func(s *scene, size string) object.Body {
		return essence(object.With(s.base, object.Path{"spec", "size"}, size))
	}
	for _, test := range []struct {
		title string
		// The size of the object goes from "1" to "2". The handler leaves left there, and the other process has seen the size elsewhere.
		left, elsewhere string
		outcome         record.Outcome
		dropped         bool
	}{
		{"failed, and the other one has succeeded", "2", "2", record.Retry, true},
		{"failed for good, and the other one has succeeded", "2", "2", record.Failed, true},
		{"waits, and the other one has succeeded", "2", "2", record.Waiting, true},
		{"both have succeeded", "2", "2", record.Done, false},
		{"goes on", "2", "2", record.Pending, false},
		{"failed, and the other one has succeeded with an earlier change", "2", "3", record.Retry, false},
		{"failed and took the change back, and there was no other one", "1", "1", record.Retry, false},
	} {
		t.Run(test.title, func(t *testing.T) {
			s := newScene(t)
			settled := func(size string) record.Record {
				return resizing().Settle(record.New("u", "v1"), sized(s, size))
			}
			before := settled("1")
			plan := resizing().Decide(handler.State{UID: "u", Record: &before, Settled: true, Essence: sized(s, "2"), Now: begun()})
			if len(plan.Runs) != 1 {
				t.Fatalf("the plan has %d attempts", len(plan.Runs))
			}
			made := journal.New(journal.Object{UID: "u", Given: s.base, Essence: essence}, plan.Finalizer, plan.Record, false)
			made.Add(journal.Attempt{
				Run: plan.Runs[0], Result: handler.Result{Outcome: test.outcome}, Seen: sized(s, test.left), At: begun(),
			}, []patch.Edit{{Path: object.Path{"status", "reason"}, Value: "refused"}})
			plan.Record = settled(test.elsewhere)
			if err := made.Fold(resizing(), plan, "", ""); err != nil {
				t.Fatal(err)
			}
			if dropped := len(made.Edits()) == 0; dropped != test.dropped {
				t.Errorf("dropped: %t, want %t", dropped, test.dropped)
			}
		})
	}
}

// The same for a creation. The steps that made the dropped changes count as not done.
func TestAFailedCreationDoesNotOverwriteASuccessElsewhere(t *testing.T) {
	s := newScene(t)
	s.attempt(1, "status.url")
	s.journal.Add(journal.Attempt{
		Run: s.plan.Runs[0], Seen: essence(object.With(s.base, object.Path{"spec", "size"}, "9")), At: begun(), Changing: []string{"b"},
		Result: handler.Result{Outcome: record.Retry, Steps: map[string]record.Step{"a": {}, "b": {}}},
	}, []patch.Edit{{Path: object.Path{"spec", "size"}, Value: "9"}})
	s.plan.Record = s.plan.Record.With("make", record.Entry{Cause: string(cause.Create), Outcome: record.Done})
	s.expect(s.documents(), "status: status.url "+recorded+" "+recordedText)
	if left := s.journal.Attempts()[1]; len(left.Result.Steps) != 1 || left.Changing != nil {
		t.Errorf("of the attempt is left %+v", left)
	}
	if size := object.Text(s.journal.Current(), "spec", "size"); size != "1" {
		t.Errorf("the handlers are said to have left the size %q, want what is stored", size)
	}
}
