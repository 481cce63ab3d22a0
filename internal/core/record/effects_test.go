package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/record"
)

func begun() time.Time { return time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC) }

// intended returns an effect without a result.
func intended(number int, by string, more ...func(*record.Intent)) record.Step {
	intent := record.Intent{Class: record.Keyed, Token: "t", Number: number, By: by, At: begun()}
	for _, change := range more {
		change(&intent)
	}
	return record.Step{Intent: &intent}
}

func void(intent *record.Intent) { intent.Void = true }
func asks(intent *record.Intent) { intent.Asks = true }

func withResult(step record.Step) record.Step {
	step.Result = json.RawMessage(`{}`)
	return step
}

// The recovery classes: what to do about an effect, given its state.
func TestTheRecoveryDecides(t *testing.T) {
	const later = time.Minute
	found := func(class record.Class, more ...func(*record.Intent)) *record.Intent {
		step := intended(1, "one", more...)
		step.Intent.Class = class
		return step.Intent
	}
	call, again := record.Move{Declare: true, Call: true}, record.Move{Declare: true, NewToken: true, Call: true}
	ask, wait := record.Move{Ask: true}, record.Move{Wait: 20 * time.Second}
	for name, test := range map[string]struct {
		class record.Class
		found record.Found
		after time.Duration
		want  record.Move
	}{
		"keyed, the first time":                       {record.Keyed, record.Found{}, later, call},
		"keyed, the first time, maybe repeated":       {record.Keyed, record.Found{Repeated: true, Doubted: true}, later, call},
		"keyed, without a result":                     {record.Keyed, record.Found{Intent: found(record.Keyed), Stored: true}, 0, record.Move{Call: true}},
		"keyed, without a result, the record is lost": {record.Keyed, record.Found{Intent: found(record.Keyed)}, 0, call},
		"keyed, nothing was made":                     {record.Keyed, record.Found{Intent: found(record.Keyed, void), Stored: true}, 0, call},
		"named, without a result":                     {record.Named, record.Found{Intent: found(record.Named), Stored: true}, 0, record.Move{Call: true}},
		"findable, the first time":                    {record.Findable, record.Found{}, later, call},
		"findable, the first time, maybe repeated":    {record.Findable, record.Found{Repeated: true}, later, record.Move{Declare: true, Look: true, Call: true}},
		"findable, without a result":                  {record.Findable, record.Found{Intent: found(record.Findable), Stored: true}, later, record.Move{Look: true, Call: true}},
		"findable, without a result for ten seconds":  {record.Findable, record.Found{Intent: found(record.Findable), Stored: true}, 10 * time.Second, wait},
		"findable, the clock was put back":            {record.Findable, record.Found{Intent: found(record.Findable), Stored: true}, -time.Hour, record.Move{Wait: 30 * time.Second}},
		"findable, the clock was ahead, seen before":  {record.Findable, record.Found{Intent: found(record.Findable), Stored: true, Since: begun().Add(-time.Hour - 10*time.Second)}, -time.Hour, wait},
		"findable, seen a minute ago by a late clock": {record.Findable, record.Found{Intent: found(record.Findable), Stored: true, Since: begun().Add(-time.Hour - time.Minute)}, -time.Hour, record.Move{Look: true, Call: true}},
		"findable, a long call ended ten seconds ago": {record.Findable, record.Found{Intent: found(record.Findable), Stored: true, Ended: begun().Add(50 * time.Second)}, later, wait},
		"findable, which was keyed":                   {record.Findable, record.Found{Intent: found(record.Keyed), Stored: true}, later, record.Move{Look: true, Call: true}},
		"stop, the first time":                        {record.Stop, record.Found{Repeated: true}, later, call},
		"stop, the first time, a record may be lost":  {record.Stop, record.Found{Doubted: true}, later, ask},
		"stop, nothing was made":                      {record.Stop, record.Found{Intent: found(record.Stop, void), Doubted: true}, later, call},
		"stop, without a result":                      {record.Stop, record.Found{Intent: found(record.Stop), Stored: true}, later, ask},
		"stop, without a result for ten seconds":      {record.Stop, record.Found{Intent: found(record.Stop), Stored: true}, 10 * time.Second, wait},
		"stop, a person is asked already":             {record.Stop, record.Found{Intent: found(record.Stop, asks), Stored: true}, 10 * time.Second, ask},
		"stop, it was not made":                       {record.Stop, record.Found{Intent: found(record.Stop, asks), Word: "again"}, 0, again},
		"stop, it was made":                           {record.Stop, record.Found{Intent: found(record.Stop, asks), Word: "done"}, 0, record.Move{Take: true}},
		"stop, a person has the result":               {record.Stop, record.Found{Intent: found(record.Stop, asks), Word: `{"id":"a"}`}, 0, record.Move{Take: true}},
		"stop, an unknown answer":                     {record.Stop, record.Found{Intent: found(record.Stop, asks), Word: "yes"}, 0, ask},
		"keyed, which was stop":                       {record.Keyed, record.Found{Intent: found(record.Stop), Stored: true}, later, ask},
		"keyed, which was stop, it was not made":      {record.Keyed, record.Found{Intent: found(record.Stop, asks), Word: "again"}, later, again},
		"stop, which was keyed":                       {record.Stop, record.Found{Intent: found(record.Keyed), Stored: true}, later, ask},
	} {
		t.Run(name, func(t *testing.T) {
			test.found.Now = begun().Add(test.after)
			if diff := cmp.Diff(test.want, test.found.Next(test.class)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two processes may know of one effect: no knowledge is lost, and intents are not confused.
func TestWhatIsKnownOfAnEffectIsJoined(t *testing.T) {
	for name, test := range map[string]struct{ stored, ours, want record.Step }{
		"both are the same":                {intended(1, "a"), intended(1, "a"), intended(1, "a")},
		"the other has the result":         {intended(1, "a"), withResult(intended(1, "a")), withResult(intended(1, "a"))},
		"the first has the result":         {withResult(intended(1, "a")), intended(1, "a"), withResult(intended(1, "a"))},
		"another's result":                 {withResult(intended(1, "a")), withResult(intended(1, "b")), withResult(intended(1, "a"))},
		"another's intent, at once":        {intended(1, "a"), intended(1, "b"), intended(1, "a")},
		"a later intent":                   {intended(1, "a"), intended(2, "a"), intended(2, "a")},
		"an earlier intent":                {intended(2, "a"), intended(1, "b", void), intended(2, "a")},
		"nothing was made":                 {intended(1, "a"), intended(1, "a", void), intended(1, "a", void)},
		"nothing was made by another":      {intended(1, "a"), intended(1, "b", void), intended(1, "a")},
		"a person is asked":                {intended(1, "a"), intended(1, "a", asks), intended(1, "a", asks)},
		"a person was asked":               {intended(1, "a", asks), intended(1, "a"), intended(1, "a", asks)},
		"a step that is an effect by now":  {record.Step{}, intended(1, "a"), record.Step{}},
		"an effect that is a step by now":  {intended(1, "a"), record.Step{}, record.Step{}},
		"a result of one that came before": {intended(2, "b"), withResult(intended(1, "a")), withResult(intended(1, "a"))},
	} {
		t.Run(name, func(t *testing.T) {
			joined := record.Join(map[string]record.Step{"x": test.stored}, map[string]record.Step{"x": test.ours})
			if diff := cmp.Diff(map[string]record.Step{"x": test.want}, joined); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An effect outlasts the step that contains it, and changes of the object.
func TestEffectsOutlastTheStepsAroundThem(t *testing.T) {
	steps := map[string]record.Step{"a/one": {}, "a/two": intended(1, "x"), "a/three": withResult(intended(1, "x"))}
	want := map[string]record.Step{"a": {}, "a/two": intended(1, "x"), "a/three": withResult(intended(1, "x"))}
	steps = record.Finish(steps, "a", record.Step{})
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
	delete(want, "a")
	if diff := cmp.Diff(want, record.Undone(steps, []string{"a", "a/two", "a/three"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, record.Effects(steps)); diff != "" {
		t.Error(diff)
	}
	if !record.Unknown(steps) || record.Unknown(map[string]record.Step{"a": {}, "b": withResult(intended(1, "x")), "c": intended(1, "x", void)}) {
		t.Error("Unknown is wrong")
	}
}

// An answer is noted, so that it is used once.
func TestAWordIsNoted(t *testing.T) {
	digest := func(word string) string { return "digest of " + word }
	steps := map[string]record.Step{"a": intended(1, "x"), "b": withResult(intended(1, "x")), "c": {}}
	heard := record.NoteAnswers(steps, map[string]string{"t": "again", "other": "done"}, digest)
	if got := heard["a"].Intent.Heard; got != "digest of again" || steps["a"].Intent.Heard != "" || heard["b"].Intent.Heard != "" {
		t.Errorf("heard %q, before %+v", got, steps["a"].Intent)
	}
}
