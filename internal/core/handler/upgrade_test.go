package handler_test

import (
	"maps"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// release is how a release reads objects: with the defaults of its schema and the zero values that its Go type writes where a field is
// absent.
type release struct{ defaults object.Defaults }

func (r release) reads(essence object.Body) object.Body {
	read, _ := r.defaults.Fill(essence).(object.Body)
	return read
}

func fills(name string, value any) object.Defaults {
	return object.Defaults{Fields: map[string]object.Defaults{name: {Value: value}}}
}

// inSpec returns a release with a type whose spec is always written, and therefore filled in.
func inSpec(fields map[string]object.Defaults) release {
	return release{object.Defaults{Fields: map[string]object.Defaults{"spec": {Value: object.Body{}, Fields: fields}}}}
}

// upgrade makes another release read the object, whose stored form is given.
func (l *life) upgrade(to release, stored object.Body) {
	l.kind.Normalize, l.essence = to.reads, to.reads(stored)
	l.restart()
	l.writes = 0
}

// upgrades holds the changes that a release can bring. Both releases read the same stored object.
func upgrades() map[string]struct{ from, to release } {
	matt := func(more map[string]object.Defaults) release {
		fields := map[string]object.Defaults{"finish": {Value: "matt"}}
		maps.Copy(fields, more)
		return inSpec(fields)
	}
	plain := inSpec(nil)
	return map[string]struct{ from, to release }{
		"a new field with a zero value":                         {plain, inSpec(map[string]object.Defaults{"strict": {Value: false}})},
		"a new field with a zero value is gone":                 {inSpec(map[string]object.Defaults{"strict": {Value: false}}), plain},
		"a new default":                                         {plain, matt(nil)},
		"a default of a field that was written as a zero value": {inSpec(map[string]object.Defaults{"finish": {Value: ""}}), matt(nil)},
		"a default that a stored field equals":                  {plain, inSpec(map[string]object.Defaults{"a": {Value: int64(1)}})},
		"the default of a stored field changes": {
			inSpec(map[string]object.Defaults{"a": {Value: int64(1)}}), inSpec(map[string]object.Defaults{"a": {Value: int64(7)}}),
		},
		"one new default next to an older one": {matt(nil), matt(map[string]object.Defaults{"strict": {Value: false}})},
		"a new part with parts of its own": {plain, matt(map[string]object.Defaults{
			"tls": {Value: object.Body{}, Fields: map[string]object.Defaults{"mode": {Value: "strict"}}},
		})},
		"a new default in a part that is optional": {plain, inSpec(map[string]object.Defaults{"part": fills("mode", "strict")})},
		"a new default in the items of a list": {plain, inSpec(map[string]object.Defaults{
			"items": {Items: &object.Defaults{Fields: map[string]object.Defaults{"mode": {Value: "strict"}, "deep": {Value: object.Body{}}}}},
		})},
	}
}

func largeSpec() object.Body {
	return spec("a", 1, "noise", noise(), "part", object.Body{}, "items", []any{object.Body{"n": int64(1)}, object.Body{}})
}

// A new Go field, a CRD default or another served version runs nothing, whether the essence or only digests of it are stored.
func TestAnUpgradeIsNoChangeToAnEssenceOfWhichOnlyDigestsAreKept(t *testing.T) {
	for what, upgraded := range upgrades() {
		t.Run(what, func(t *testing.T) {
			l := newLife(t, declared("all", cause.Update), declared("spec", cause.Update, "spec"),
				declared("leaf", cause.Update, "spec.finish", "spec.part.mode", "spec.a"))
			l.upgrade(upgraded.from, largeSpec())
			l.expect(cause.Create)
			if kept := l.record().Seen; len(kept) != 1 || kept[0].Body != nil || len(kept[0].Views) != 3 {
				t.Fatalf("more than digests is stored: %s", l.stored)
			}
			l.upgrade(upgraded.to, largeSpec())
			l.expect(cause.Noop)
			if l.writes != 0 {
				t.Errorf("%d writes, want 0", l.writes)
			}
			l.essence = object.With(l.essence, object.Path{"spec", "a"}, int64(2))
			l.expect(cause.Update, "all(update, 1)", "spec(update, 1)", "leaf(update, 1)")
			l.expect(cause.Noop)
		})
	}
}

// Of a handler that failed permanently, and of one that waits for its next attempt, only the digest of its view is stored, however
// small the object is.
func TestAnUpgradeRunsNoHandlerThatFailedForGoodAndEndsNoBackoff(t *testing.T) {
	for what, upgraded := range upgrades() {
		t.Run(what, func(t *testing.T) {
			stored := spec("a", 1, "part", object.Body{}, "items", []any{object.Body{}})
			l := newLife(t, declared("never", cause.Create), declared("later", cause.Create, "spec"))
			l.results["never"] = handler.Result{Outcome: record.Failed}
			l.fail("later", time.Minute)
			l.upgrade(upgraded.from, stored)
			l.expect(cause.Create, "never(create, 1)", "later(create, 1)")
			l.upgrade(upgraded.to, stored)
			l.expect(cause.Create)
			l.now = l.now.Add(time.Minute)
			l.succeed("later")
			l.expect(cause.Create, "later(create, 2)")
			l.expect(cause.Noop)
		})
	}
}

func TestAnUpgradeRunsNoDeleteHandlerThatFailedForGood(t *testing.T) {
	for what, upgraded := range upgrades() {
		t.Run(what, func(t *testing.T) {
			l := newLife(t, declared("never", cause.Delete))
			l.results["never"] = handler.Result{Outcome: record.Failed}
			l.upgrade(upgraded.from, spec("a", 1))
			l.expect(cause.Create)
			l.deleting = true
			l.expect(cause.Delete, "never(delete, 1)")
			l.upgrade(upgraded.to, spec("a", 1))
			l.expect(cause.Delete)
		})
	}
}

func TestWaitingThroughAnUpgradeIsNotWrittenAgain(t *testing.T) { // docs/concepts/scenarios.md, 29
	l := newLife(t, declared("make", cause.Create))
	l.results["make"] = handler.Result{Outcome: record.Waiting, Delay: time.Minute, Asked: true}
	l.upgrade(inSpec(nil), spec("a", 1))
	l.expect(cause.Create, "make(create, 1)")
	l.upgrade(inSpec(map[string]object.Defaults{"strict": {Value: false}}), spec("a", 1))
	l.now = l.now.Add(time.Minute)
	l.expect(cause.Create, "make(create, 1)?")
	if l.writes != 0 {
		t.Errorf("%d writes, want 0", l.writes)
	}
}

// What a handler looks at is compared completely, whatever its digest leaves out: within one release different content never looks the
// same.
func TestOfALargeEssenceNoChangeIsLost(t *testing.T) {
	reads := inSpec(map[string]object.Defaults{
		"replicas": {Value: int64(1)}, "strict": {Value: false},
		"tls": {Fields: map[string]object.Defaults{"mode": {Value: "strict"}, "level": {Value: int64(0)}}},
	})
	large := func(pairs ...any) object.Body { return spec(append(pairs, "noise", noise())...) }
	for what, c := range map[string]struct {
		before, after object.Body
		runs          []string
	}{
		"from the default to zero":                 {large(), large("replicas", 0), []string{"all(update, 1)"}},
		"from zero to the default":                 {large("replicas", 0), large(), []string{"all(update, 1)"}},
		"the default is written":                   {large(), large("replicas", 1), nil},
		"from zero to something":                   {large(), large("strict", true), []string{"all(update, 1)"}},
		"a part that is empty":                     {large(), large("tls", object.Body{}), []string{"all(update, 1)", "leaf(update, 1)"}},
		"a part goes":                              {large("tls", object.Body{"level": int64(1)}), large(), []string{"all(update, 1)", "leaf(update, 1)"}},
		"a part changes beside the field":          {large("tls", object.Body{}), large("tls", object.Body{"level": int64(1)}), []string{"all(update, 1)"}},
		"an empty part without defaults":           {large(), large("other", object.Body{}), []string{"all(update, 1)"}},
		"an empty text without defaults":           {large(), large("other", ""), []string{"all(update, 1)"}},
		"a list grows by an empty item":            {large("list", []any{}), large("list", []any{object.Body{}}), []string{"all(update, 1)"}},
		"a field in a new part":                    {large(), large("box", object.Body{"lid": true}), []string{"all(update, 1)", "lid(update, 1)"}},
		"only the part that would contain a field": {large(), large("box", object.Body{}), []string{"all(update, 1)"}},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLife(t, declared("all", cause.Update), declared("leaf", cause.Update, "spec.tls.mode"), declared("lid", cause.Update, "spec.box.lid"))
			l.upgrade(reads, c.before)
			l.expect(cause.Create)
			l.essence = reads.reads(c.after)
			if len(c.runs) == 0 {
				l.expect(cause.Noop)
				return
			}
			l.expect(cause.Update, c.runs...)
			l.expect(cause.Noop)
		})
	}
}

// An object without a handler's optional field, and one without the part that would contain it, look the same to the handler. An
// upgrade that sets the field in one of them must not run it.
func TestANewDefaultOfTheOnlyFieldThatAHandlerLooksAt(t *testing.T) {
	defaulted := release{object.Defaults{Fields: map[string]object.Defaults{"spec": fills("finish", "matt")}}}
	for what, stored := range map[string]object.Body{
		"with its part":    object.With(largeSpec(), object.Path{"data"}, object.Body{}),
		"without its part": {"data": object.Body{"noise": noise()}},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLife(t, declared("finish", cause.Update, "spec.finish"))
			l.essence = stored
			l.expect(cause.Create)
			l.upgrade(defaulted, stored)
			l.expect(cause.Noop)
			l.essence = defaulted.reads(object.With(stored, object.Path{"spec", "a"}, int64(5)))
			if what == "with its part" {
				l.expect(cause.Noop)
				return
			}
			l.expect(cause.Update, "finish(update, 1)") // The field was absent and is now filled in.
		})
	}
}

// A release without minimal forms wrote a single digest for each view.
func TestADigestOfTheViewAloneIsStillRead(t *testing.T) {
	l := newLife(t, declared("all", cause.Update))
	l.upgrade(inSpec(map[string]object.Defaults{"strict": {Value: false}}), largeSpec())
	l.expect(cause.Create)
	r := l.record()
	r.Seen[0].Views = map[string]string{"all": object.Digest(object.View(l.essence, nil))}
	l.store(r)
	l.expect(cause.Noop)
	l.essence = object.With(l.essence, object.Path{"spec", "strict"}, true)
	l.expect(cause.Update, "all(update, 1)")
}

// Of Secrets only keyed digests are stored. They survive a new release of the Go type, as other digests do.
func TestAnUpgradeIsNoChangeToASecret(t *testing.T) {
	l := secretLife(t, declared("rotate", cause.Update, "data.password"), declared("all", cause.Update))
	stored := secret("hunter2")
	l.upgrade(release{}, stored)
	l.expect(cause.Create)
	l.upgrade(release{fills("sealed", false)}, stored)
	l.expect(cause.Noop)
	if l.writes != 0 {
		t.Errorf("%d writes, want 0", l.writes)
	}
	l.essence = object.With(l.essence, object.Path{"sealed"}, true)
	l.expect(cause.Update, "all(update, 1)")
	l.shows("hunter2")
}

// Scenario 83 (docs/concepts/scenarios.md): new defaults of a schema are not a change for update handlers or level-triggered handlers,
// and never appear in a diff.
func TestASchemaThatChangesMeanwhileIsNoChange(t *testing.T) {
	all := upgrades()
	for _, ofTheType := range []string{"a new field with a zero value is gone", "a default of a field that was written as a zero value"} {
		delete(all, ofTheType) // What the Go type writes does not change within a process.
	}
	for what, upgraded := range all {
		t.Run(what, func(t *testing.T) {
			stored := spec("a", 1, "part", object.Body{}, "items", []any{object.Body{}})
			l := newLife(t, declared("change", cause.Update), declared("look", cause.Reconcile))
			l.upgrade(upgraded.from, stored)
			l.expect(cause.Create, "look(reconcile, 1)")
			l.writes = 0
			l.kind.Normalize, l.essence = upgraded.to.reads, upgraded.to.reads(stored)
			l.expect(cause.Noop)
			if l.writes != 0 {
				t.Errorf("%d writes, want 0", l.writes)
			}
			l.essence = object.With(l.essence, object.Path{"spec", "a"}, int64(2))
			l.expect(cause.Update, "change(update, 1) spec.a:1->2", "look(reconcile, 1)")
		})
	}
}

// A version of the kind that renames a field runs the update handlers that look at it once: the seen content cannot be converted, and a
// change must not be missed. Handlers of other fields do not run.
func TestAVersionThatRenamesAFieldRunsItsHandlersOnce(t *testing.T) {
	l := newLife(t, declared("resize", cause.Update, "spec.a"), declared("other", cause.Update, "spec.b"))
	l.expect(cause.Create)
	l.kind.Handlers = []handler.Declaration{declared("resize", cause.Update, "spec.renamed"), declared("other", cause.Update, "spec.b")}
	l.essence = spec("renamed", 1, "b", 1)
	l.expect(cause.Update, "resize(update, 1) spec:<nil>->map[renamed:1]")
	l.expect(cause.Noop)
}
