package journal_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

const identity = "op"

func begun() time.Time { return time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC) }

func essence(of object.Body) object.Body { return object.Essence(of, identity, nil) }

func kind() handler.Kind {
	return handler.Kind{Handlers: []handler.Declaration{{ID: "make", Verb: cause.Create}, {ID: "tell", Verb: cause.Create}}}
}

// scene is an object for which two create handlers are to run.
type scene struct {
	*testing.T

	base    object.Body
	plan    handler.Plan
	journal *journal.Journal
	// stored is the text of the record that the object has, and carrier where it is.
	stored  string
	carrier record.Carrier
	// conditions are those of the framework.
	conditions []journal.Condition
}

func newScene(t *testing.T) *scene {
	t.Helper()
	base := object.Body{
		"metadata": object.Body{"name": "one", "uid": "u", "generation": int64(1)},
		"spec":     object.Body{"size": "1", "list": []any{"a", "b"}}, "status": object.Body{},
	}
	plan := kind().Decide(handler.State{UID: "u", Essence: essence(base), Now: begun()})
	if len(plan.Runs) != 2 {
		t.Fatalf("the plan has %d attempts", len(plan.Runs))
	}
	of := journal.Object{UID: "u", Given: base, Essence: essence}
	return &scene{T: t, base: base, plan: plan, journal: journal.New(of, plan.Finalizer, plan.Record, false), carrier: record.Status}
}

// attempt adds an attempt that has succeeded, and has set a field.
func (s *scene) attempt(of int, field string) {
	s.Helper()
	at := object.Path(strings.Split(field, "."))
	left := object.With(s.base, at, "x")
	s.journal.Add(journal.Attempt{
		Run: s.plan.Runs[of], Result: handler.Result{Outcome: record.Done}, Seen: essence(left), At: begun(),
	}, []patch.Edit{{Path: at, Value: "x"}})
}

func (s *scene) target() journal.Target {
	return journal.Target{
		Base: s.base, Seen: s.base, HasStatus: true, Carrier: s.carrier, Identity: identity, Finalizer: identity + "/finalizer", Stored: s.stored,
		Conditions: s.conditions, Now: begun(),
	}
}

// documents folds the journal and makes its documents.
func (s *scene) documents() []journal.Document {
	s.Helper()
	if err := s.journal.Fold(kind(), s.plan, s.stored, s.stored); err != nil {
		s.Fatal(err)
	}
	documents, contested := s.journal.Documents(s.target())
	if contested != nil {
		s.Fatalf("contested: %s", contested)
	}
	return documents
}

// accept lets the API server accept a document, which changes the object.
func (s *scene) accept(one journal.Document) {
	s.Helper()
	for _, operation := range one.Changes.Operations() {
		if operation.Op == "add" {
			s.base = object.With(s.base, fields(operation), operation.Value)
		}
	}
	if s.journal.Accepted(one); one.Record {
		s.stored = s.journal.Text()
	}
}

func fields(of patch.Operation) object.Path {
	path := strings.Split(strings.TrimPrefix(of.Path, "/"), "/")
	for i := range path {
		path[i] = strings.ReplaceAll(path[i], "~1", "/")
	}
	return path
}

// expect compares what documents change: a line each, with the subresource and the fields.
func (s *scene) expect(got []journal.Document, want ...string) {
	s.Helper()
	var lines []string
	for _, one := range got {
		line := one.Subresource + ":"
		for _, operation := range one.Changes.Operations() {
			if operation.Op != "test" {
				line += " " + fields(operation).String()
			}
		}
		lines = append(lines, line)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		s.Errorf("documents (-want +got):\n%s", diff)
	}
}

// outcomes are those that the record has of the handlers.
func (s *scene) outcomes() map[string]record.Outcome {
	s.Helper()
	found := map[string]record.Outcome{}
	for id, entry := range s.journal.Record().Handlers {
		found[id] = entry.Outcome
	}
	return found
}

const (
	recorded     = "status.records"
	recordedText = "status.records." + identity
)

// The record goes with the last document, and there are no more documents than needed.
func TestTheRecordIsWrittenLast(t *testing.T) {
	for _, test := range []struct {
		title   string
		carrier record.Carrier
		fields  []string
		want    []string
	}{
		{"nothing changed", record.Status, nil, []string{"status: " + recorded + " " + recordedText}},
		{"status", record.Status, []string{"status.phase"}, []string{"status: status.phase " + recorded + " " + recordedText}},
		{"spec and status", record.Status, []string{"spec.size", "status.phase"}, []string{": spec.size", "status: status.phase " + recorded + " " + recordedText}},
		{
			"in an annotation", record.Annotation,
			[]string{"spec.size", "status.phase"},
			[]string{"status: status.phase", ": spec.size metadata.annotations metadata.annotations.op/record"},
		},
	} {
		t.Run(test.title, func(t *testing.T) {
			s := newScene(t)
			s.carrier = test.carrier
			for _, field := range test.fields {
				s.attempt(0, field)
			}
			s.expect(s.documents(), test.want...)
		})
	}
}

// The finalizer is added alone, and a lost record goes with it.
func TestTheFinalizerIsAddedBeforeAnythingElse(t *testing.T) {
	for keepRecord, want := range map[bool]string{true: ": metadata.finalizers", false: ": metadata.finalizers metadata.annotations metadata.annotations.op/record"} {
		s := newScene(t)
		s.carrier, s.plan.Finalizer = record.Annotation, handler.Add
		s.journal = journal.OnlyFinalizer(journal.Object{UID: "u", Given: s.base, Essence: essence}, s.plan.Record, keepRecord)
		s.expect(s.documents(), want)
	}
}

// The finalizer is removed after the record is written, and no new one is added to an object whose newest plan does not want one.
func TestTheFinalizerFollowsTheNewestPlan(t *testing.T) {
	s := newScene(t)
	s.base = object.With(s.base, object.Path{"metadata", "finalizers"}, []any{identity + "/finalizer"})
	s.attempt(0, "spec.size")
	if err := s.journal.Fold(kind(), s.plan, "", ""); err != nil {
		t.Fatal(err)
	}
	target := s.target()
	target.Removes = true
	documents, _ := s.journal.Documents(target)
	s.expect(documents, "status: "+recorded+" "+recordedText, ": spec.size metadata.finalizers.0")
	target.Released = true
	documents, _ = s.journal.Documents(target)
	s.expect(documents, ": spec.size metadata.finalizers.0")

	late := newScene(t)
	late.journal = journal.OnlyFinalizer(journal.Object{UID: "u", Given: s.base, Essence: essence}, s.plan.Record, false)
	late.expect(late.documents()) // The plan keeps what there is.
}

// What the API server has accepted is not sent again, whatever becomes of the next document.
func TestTheFirstDocumentIsAcceptedAndTheSecondIsNot(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "spec.size")
	s.attempt(1, "status.phase")
	s.accept(s.documents()[0])
	s.expect(s.documents(), "status: status.phase "+recorded+" "+recordedText)

	rejected, smaller := s.journal.Refused(kind(), journal.Refusal{Reason: "must be a number", Now: begun()})
	if len(rejected.Rejected) != 2 || !smaller || rejected.Rejected[0].Result.Outcome != record.Retry { // Which of them it was is not known.
		t.Errorf("%t, %+v", smaller, rejected)
	}
	s.expect(s.documents(), "status: "+recorded+" "+recordedText)
	if diff := cmp.Diff(map[string]record.Outcome{"make": record.Retry, "tell": record.Retry}, s.outcomes()); diff != "" {
		t.Error(diff)
	}
	if size := object.Text(s.journal.Current(), "spec", "size"); size != "x" {
		t.Errorf("the handlers are said to have seen the size %q, want what is stored", size)
	}
}

// After a conflict, the attempts are folded into the record that is there now.
func TestAfterAConflictNothingOfBothWritersIsLost(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "status.phase")
	s.documents()
	other := s.plan.Record.With("tell", record.Entry{Cause: string(cause.Create), Outcome: record.Retry, Attempts: 3})
	other.Writes = 7
	s.base, s.plan.Record = object.With(s.base, object.Path{"status", "url"}, "there"), other
	s.expect(s.documents(), "status: status.phase "+recorded+" "+recordedText)
	got := s.journal.Record()
	if got.Handlers["tell"].Attempts != 3 || got.Handlers["make"].Outcome != record.Done || got.Writes != 8 {
		t.Errorf("the record is %+v", got)
	}
}

// What is stored while a handler goes on is not stored again, and its end takes the place of what was noted before.
func TestPartsOfAnAttemptAreStoredMeanwhile(t *testing.T) {
	s := newScene(t)
	part := journal.Attempt{Run: s.plan.Runs[0], Result: handler.Result{Outcome: record.Pending}, Seen: essence(s.base), At: begun()}
	s.journal.Add(part, []patch.Edit{{Path: object.Path{"status", "step"}, Value: "1"}})
	for _, one := range s.documents() {
		s.accept(one)
	}
	s.plan.Record = s.journal.Stored()
	s.expect(s.documents())
	s.journal.Add(part, []patch.Edit{{Path: object.Path{"status", "step"}, Value: "2"}})
	s.attempt(0, "status.phase")
	if left := s.journal.Attempts(); len(left) != 1 || left[0].Result.Outcome != record.Done {
		t.Errorf("%d attempts are left: %+v", len(left), left)
	}
	s.expect(s.documents(), "status: status.step status.phase "+recordedText)
}

// An attempt that another replica has made too is dropped.
func TestAnAttemptIsDropped(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "status.phase")
	s.attempt(1, "status.url")
	s.journal.Drop(s.plan.Runs[0])
	s.documents()
	if diff := cmp.Diff(map[string]record.Outcome{"make": record.Pending, "tell": record.Done}, s.outcomes()); diff != "" {
		t.Error(diff)
	}
}

// A handler whose item of a list another client has changed runs again. The changes of others stay.
func TestAContestedListIsGivenUp(t *testing.T) {
	s := newScene(t)
	list := object.Path{"spec", "list"}
	edits := patch.Lists(nil).Edits(s.base, object.With(s.base, list, []any{"a", "mine"}))
	s.journal.Add(journal.Attempt{Run: s.plan.Runs[0], Result: handler.Result{Outcome: record.Done}, Seen: essence(s.base), At: begun()}, edits)
	s.attempt(1, "status.url")
	s.base = object.With(s.base, list, []any{"a", "theirs"})
	if err := s.journal.Fold(kind(), s.plan, "", ""); err != nil {
		t.Fatal(err)
	}
	_, contested := s.journal.Documents(s.target())
	if !slices.Equal(contested, list) {
		t.Fatalf("contested: %s", contested)
	}
	taken := s.journal.Contested(contested, begun())
	if len(taken) != 1 || taken[0].Run.ID != "make" || taken[0].Result.Outcome != record.Retry || s.journal.Rejection() == nil {
		t.Errorf("%+v, %v", taken, s.journal.Rejection())
	}
	s.expect(s.documents(), "status: status.url "+recorded+" "+recordedText)
}

// always is a condition that is always put.
type always struct{}

// Put adds the condition.
func (always) Put(list []any, generation any, _ time.Time) ([]any, bool) {
	return append(list, object.Body{"type": "RecordLost", "observedGeneration": generation}), true
}

// What is refused is left out step by step: the conditions, the changes of handlers, parts of the record.
func TestARefusedJournalGetsSmaller(t *testing.T) {
	s := newScene(t)
	s.conditions = []journal.Condition{always{}}
	s.attempt(0, "status.phase")
	refuse := func(why journal.Refusal, want bool, documents ...string) journal.Concession {
		t.Helper()
		why.Now, why.Stored = begun(), s.stored
		less, smaller := s.journal.Refused(kind(), why)
		if smaller != want {
			t.Errorf("smaller: %t, want %t", smaller, want)
		}
		s.expect(s.documents(), documents...)
		return less
	}
	s.expect(s.documents(), "status: status.phase "+recorded+" "+recordedText+" status.conditions")
	refuse(journal.Refusal{}, true, "status: status.phase "+recorded+" "+recordedText)
	if !s.journal.WithoutConditions() {
		t.Error("it does not say that the conditions are left out")
	}
	refuse(journal.Refusal{Reason: "no"}, true, "status: "+recorded+" "+recordedText+" status.conditions")
	refuse(journal.Refusal{Denied: true}, true, "status: "+recorded+" "+recordedText)
	refuse(journal.Refusal{Denied: true}, false, "status: "+recorded+" "+recordedText) // Less of it would be denied too.
	if less := refuse(journal.Refusal{TooLarge: true}, true, "status: "+recorded+" "+recordedText); less.After >= less.Before || less.Unstored {
		t.Errorf("%+v", less)
	}
	less := refuse(journal.Refusal{TooLarge: true, Optional: true}, true)
	for !less.Unstored {
		less = refuse(journal.Refusal{TooLarge: true, Optional: true}, true)
	}
	if !s.journal.Unstored() || s.outcomes()["make"] != record.Retry {
		t.Errorf("the record is %+v", s.journal.Record())
	}
	refuse(journal.Refusal{TooLarge: true, Optional: true}, false)
}

// Steps whose changes are refused have to be made again. An attempt that goes on is not failed by that.
func TestStepsWhoseChangesAreRefusedAreForgotten(t *testing.T) {
	for outcome, want := range map[record.Outcome]record.Outcome{record.Done: record.Retry, record.Pending: record.Pending} {
		s := newScene(t)
		s.journal.Add(journal.Attempt{
			Run: s.plan.Runs[0], Seen: essence(s.base), At: begun(), Changing: []string{"b"},
			Result: handler.Result{Outcome: outcome, Steps: map[string]record.Step{"a": {Result: json.RawMessage("1")}, "b": {}}},
		}, []patch.Edit{{Path: object.Path{"status", "phase"}, Value: "x"}})
		s.documents()
		less, _ := s.journal.Refused(kind(), journal.Refusal{Reason: "no", Now: begun()})
		made := less.Rejected[0]
		if _, kept := made.Result.Steps["a"]; !kept || len(made.Result.Steps) != 1 || made.Result.Outcome != want {
			t.Errorf("%s becomes %+v", outcome, made.Result)
		}
	}
}

// Two handlers that set one field of the status to different values contradict each other.
func TestHandlersThatContradictEachOtherAreNamed(t *testing.T) {
	s := newScene(t)
	s.attempt(0, "status.phase")
	got := s.journal.Add(journal.Attempt{Run: s.plan.Runs[1], Seen: essence(s.base)}, []patch.Edit{{Path: object.Path{"status", "phase"}, Value: "y"}})
	if diff := cmp.Diff([]journal.Overwritten{{Field: "status.phase", Earlier: "make"}}, got); diff != "" {
		t.Error(diff)
	}
	if by := s.journal.Setter("status.phase"); by != "tell" {
		t.Errorf("the last one who has set it is %q", by)
	}
}
