package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// A rejection fails only attempts that have changed something.
func TestAnAttemptWithoutChangesIsNotRejected(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "status.phase")
	s.journal.Add(journal.Attempt{Run: s.plan.Runs[1], Result: handler.Result{Outcome: record.Done}, Seen: s.journal.Current(), At: begun()}, nil)
	s.documents()
	less, _ := s.journal.Refused(kind(), journal.Refusal{Reason: "no", Now: begun()})
	if len(less.Rejected) != 1 || less.Rejected[0].Run.ID != "make" {
		t.Errorf("rejected are %+v", less.Rejected)
	}
	s.documents()
	if diff := cmp.Diff(map[string]record.Outcome{"make": record.Retry, "tell": record.Done}, s.outcomes()); diff != "" {
		t.Error(diff)
	}
}

// What the next handler sees changes when an attempt has ended, not while it goes on.
func TestAnAttemptThatGoesOnChangesNothingForOthers(t *testing.T) {
	s := newScene(t)
	left := essence(object.With(s.base, object.Path{"spec", "size"}, "2"))
	made := journal.Attempt{Run: s.plan.Runs[0], Result: handler.Result{Outcome: record.Pending}, Seen: left, At: begun()}
	for outcome, want := range map[record.Outcome]string{record.Pending: "1", record.Done: "2"} {
		made.Result.Outcome = outcome
		of := newScene(t)
		of.journal.Add(made, nil)
		if got := object.Text(of.journal.Current(), "spec", "size"); got != want {
			t.Errorf("%s: the size is %s, want %s", outcome, got, want)
		}
	}
}

// A field with the name of the conditions that is no list is left alone.
func TestConditionsAreOnlyPutIntoAList(t *testing.T) {
	for value, want := range map[any]string{nil: " status.conditions", "text": ""} {
		s := newScene(t)
		s.base = object.With(s.base, object.Path{"status", "conditions"}, value)
		s.conditions = []journal.Condition{always{}}
		s.attempt(0, "status.phase")
		s.expect(s.documents(), "status: status.phase "+recorded+" "+recordedText+want)
	}
}

// A stored record for which there is no room any more is removed. The document that does so stores no record.
func TestARecordWithoutRoomIsRemoved(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "status.phase")
	for _, one := range s.documents() {
		if !one.Record {
			t.Error("the first document does not store the record")
		}
		s.accept(one)
	}
	s.plan.Record = s.journal.Stored()
	s.attempt(1, "status.url")
	s.documents()
	for !s.journal.Unstored() {
		if _, smaller := s.journal.Refused(kind(), journal.Refusal{TooLarge: true, Optional: true, Stored: s.stored, Now: begun()}); !smaller {
			t.Fatal("the record does not get smaller")
		}
		s.documents()
	}
	for _, one := range s.documents() {
		for _, operation := range one.Changes.Operations() {
			if one.Record || operation.Op == "add" && fields(operation).String() == "status.op.record" {
				t.Errorf("a document stores a record: %+v", operation)
			}
		}
	}
}

// All fields that the documents change are named, also those of the framework.
func TestTheChangedFieldsAreNamed(t *testing.T) {
	names := func(edits []patch.Edit) (found []string) {
		for _, edit := range edits {
			found = append(found, edit.Path.String())
		}
		return found
	}
	s := newScene(t)
	s.attempt(0, "spec.size")
	s.documents()
	at := s.carrier.Path(identity).String()
	if diff := cmp.Diff([]string{"spec.size", at}, names(s.journal.Changes(s.target()))); diff != "" {
		t.Error(diff)
	}
	s.plan.Finalizer = handler.Add
	s.journal = journal.OnlyFinalizer(journal.Object{UID: "u", Given: s.base, Essence: essence}, s.plan.Record, true)
	s.documents()
	if diff := cmp.Diff([]string{"metadata.finalizers"}, names(s.journal.Changes(s.target()))); diff != "" {
		t.Error(diff)
	}
}
