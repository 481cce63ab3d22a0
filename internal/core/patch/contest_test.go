package patch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// rival is another writer of the same object: both write in turn.
type rival struct {
	patch.Contest

	body object.Body
	now  time.Time
}

// turn lets the rival write a field, and then the operator another one or the same. It returns the result of Turn.
func (r *rival) turn(theirs, ours string, value int) (fight, news bool) {
	r.now = r.now.Add(time.Second)
	r.body = object.With(r.body, object.Path{"spec", theirs}, -int64(value))
	edits := []patch.Edit{{Path: object.Path{"spec", ours}, Value: int64(value)}}
	fields, news := r.Turn(r.body, edits, r.now)
	r.body = patch.Apply(r.body, edits)
	r.Wrote(r.body, edits)
	return len(fields) > 0, news
}

func TestTwoWritersOfOneFieldFight(t *testing.T) {
	r := &rival{body: object.Body{}, now: time.Unix(0, 0)}
	begun := 0
	for turn := 1; turn <= 30; turn++ {
		fight, news := r.turn("color", "color", turn)
		if fight && begun == 0 {
			begun = turn
		}
		if fight != (begun > 0) || news != (turn == begun) {
			t.Fatalf("turn %d: fight %t, news %t", turn, fight, news)
		}
	}
	if begun < 5 || begun > 15 {
		t.Errorf("the conflict was detected in turn %d", begun)
	}
	r.now = r.now.Add(time.Hour)
	for turn := 1; turn <= 30; turn++ {
		if fight, _ := r.turn("color", "color", turn); fight {
			return
		}
	}
	t.Error("another conflict was not detected")
}

func TestAFightGoesOnAtAPace(t *testing.T) {
	r := &rival{body: object.Body{}, now: time.Unix(0, 0)}
	told := 0
	for turn := range 1000 {
		fight, news := r.turn("color", "color", turn)
		if news {
			told++
		}
		if fight {
			r.now = r.now.Add(r.Pause())
		}
	}
	if told != 1 {
		t.Errorf("reported %d times, want once", told)
	}
	if minutes := r.now.Sub(time.Unix(0, 0)).Minutes(); minutes < 900 {
		t.Errorf("1000 turns took %.0f minutes", minutes)
	}
}

func TestWhoFollowsAnotherWriterDoesNotFight(t *testing.T) {
	r := &rival{body: object.Body{}, now: time.Unix(0, 0)}
	for turn := range 1000 {
		if fight, _ := r.turn("size", "phase", turn); fight {
			t.Fatalf("turn %d", turn)
		}
	}
}

func TestNowAndThenOneFieldMayBeWrittenByTwo(t *testing.T) {
	r := &rival{body: object.Body{}, now: time.Unix(0, 0)}
	for turn := range 1000 {
		if fight, _ := r.turn("color", "color", turn); fight {
			t.Fatalf("turn %d", turn)
		}
		r.now = r.now.Add(patch.LongestPause)
	}
}

// The API server's own change of a written value is not another client's write.
func TestAFieldThatTheServerDropsIsNoFight(t *testing.T) {
	contest, now := patch.Contest{}, time.Unix(0, 0)
	edits := []patch.Edit{{Path: object.Path{"status", "typo"}, Value: "x"}}
	for range 100 {
		if fields, _ := contest.Turn(object.Body{}, edits, now); len(fields) > 0 {
			t.Fatal("a conflict was detected")
		}
		contest.Wrote(object.Body{}, edits)
	}
}

// Lists with keys are shared: each client writes its own items.
func TestWhoWritesAnotherConditionDoesNotFight(t *testing.T) {
	const turns = 100
	at := object.Path{"status", "conditions"}
	fights := func(theirs string) bool {
		contest, current := patch.Contest{}, object.Body{}
		for turn := range turns {
			current = patch.Apply(current, setCondition(current, at, theirs, -int64(turn)))
			edits := setCondition(current, at, "Ours", int64(turn))
			if fields, _ := contest.Turn(current, edits, time.Unix(int64(turn), 0)); len(fields) > 0 {
				return true
			}
			current = patch.Apply(current, edits)
			contest.Wrote(current, edits)
		}
		return false
	}
	if fights("Theirs") {
		t.Error("writes of different conditions count as a conflict")
	}
	if !fights("Ours") {
		t.Error("writes of the same condition do not count as a conflict")
	}
}

func setCondition(in object.Body, at object.Path, name string, value int64) []patch.Edit {
	var others []any
	list, _ := object.Get(in, at...)
	items, _ := list.([]any)
	for _, item := range items {
		if one, is := item.(object.Body); is && one["type"] != name {
			others = append(others, one)
		}
	}
	return conditions().Keyed(in, []patch.Edit{{Path: at, Value: append(others, object.Body{"type": name, "value": value})}})
}

// The pauses start with the sixth write in ten seconds, double up to the longest, and start from the first one after a rest.
func TestHandlersThatUndoEachOtherAreSlowedDown(t *testing.T) {
	contest, now := patch.Contest{}, time.Unix(0, 0)
	edits := []patch.Edit{{Path: object.Path{"spec", "size"}, Value: int64(1)}}
	contest.Turn(object.Body{}, edits, now)
	for write := 2; write <= 5; write++ {
		if found, _ := contest.Chain([]string{"a"}, edits, now); len(found) > 0 {
			t.Fatalf("write %d is a conflict", write)
		}
	}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		found, news := contest.Chain([]string{"b"}, edits, now)
		if diff := cmp.Diff([]string{"a", "b"}, found); diff != "" || news != (i == 0) || contest.Pause() != time.Duration(want)*time.Second {
			t.Fatalf("write %d: pause %s, news %t, handlers %s", i+6, contest.Pause(), news, diff)
		}
		now = now.Add(contest.Pause())
	}
	now = now.Add(2 * time.Minute)
	for write := range 4 {
		if found, _ := contest.Chain([]string{"a"}, edits, now); len(found) > 0 {
			t.Fatalf("write %d after a rest is a conflict", write+1)
		}
	}
}

// An edit of a field outside the conflict is handled without delay, unless such edits never end.
func TestEditsBesideAConflictAreExempt(t *testing.T) {
	contest, now := patch.Contest{}, time.Unix(0, 0)
	for range 5 {
		contest.Chain([]string{"a"}, []patch.Edit{{Path: object.Path{"spec", "size"}, Value: int64(1)}}, now)
	}
	for text, exempt := range map[string]bool{"": false, "spec": false, "spec.size": false, "spec.size.x": false, "spec.color": true} {
		var changed []object.Path
		if text != "" {
			changed = []object.Path{strings.Split(text, ".")}
		}
		if contest.Exempt(changed, now) != exempt {
			t.Errorf("a change of %q: want %t", text, exempt)
		}
	}
	handled := 0
	for range 100 {
		if contest.Exempt([]object.Path{{"spec", "color"}}, now) {
			handled++
		}
	}
	if handled > 5 {
		t.Errorf("%d edits in a row are exempt", handled)
	}
}
