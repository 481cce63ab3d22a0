package virtual_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 82, of kinds that are chosen: one is served from its definition on, without a restart, quiet when it goes, and
// served again.
func TestChosenKindsComeAndGo(t *testing.T) {
	definition := fixture.DefineThings("a.dev", "categories: [tests]", "v1")
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnUpdate("change", fixture.Nothing[unstructured.Unstructured])
		every.OnDelete("unmake", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since := 0
		w.Pass(time.Minute)
		w.says("msg~ForEvery matches no kinds yet", 1)
		w.create(definition.DeepCopy())
		w.create(fixture.NewThing("a.dev/v1", "one"))
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1 one (create)")
		w.change(fixture.NewThing("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Second)
		w.called(&since, "change of a.dev/v1 one (update)")
		w.delete(fixture.NewThing("a.dev/v1", "one"))
		w.Pass(time.Second)
		w.called(&since, "unmake of a.dev/v1 one (delete)")
		w.delete(definition.DeepCopy())
		w.Pass(time.Minute)
		w.says("msg~kind no longer matches ForEvery", 1)
		before := len(w.log.String())
		w.Pass(time.Hour)
		if said := w.log.String()[before:]; said != "" {
			t.Errorf("while the kind is gone the log says\n%s", said)
		}
		w.create(definition.DeepCopy())
		w.create(fixture.NewThing("a.dev/v1", "one"))
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1 one (create)")
	})
}

func setSize(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "size")
}

// Scenario 83: the API server prefers another version. The watch moves, and nothing is done again: handlers see what changes from
// then on, in the new version.
func TestAWatchMovesToTheVersionThatIsPreferred(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Name: "things.a.dev"})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnUpdate("change", fixture.Nothing[unstructured.Unstructured])
		every.OnResume("greet", fixture.Nothing[unstructured.Unstructured])
		every.OnDelete("unmake", fixture.Nothing[unstructured.Unstructured])
		every.OnEvent("watch", fixture.Nothing[unstructured.Unstructured])
		every.Reconcile("look", fixture.Nothing[unstructured.Unstructured])
		every.Timer("tick", time.Hour, fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since, definition := 0, fixture.DefineThings("a.dev", "", "v1beta1")
		w.Pass(time.Minute)
		w.is(`waiting for kinds called "things" of the group a.dev to be served`)
		w.says("reason~waiting for kinds called", 1)
		w.create(definition.DeepCopy())
		w.Pass(2 * time.Second)
		w.is("")
		w.create(fixture.NewThing("a.dev/v1beta1", "one"), fixture.NewThing("a.dev/v1beta1", "two"))
		w.Pass(time.Second)
		w.calls(&since)
		writes := len(w.Writes())
		for _, version := range []string{"v1", "v2"} {
			w.change(definition, func(u *unstructured.Unstructured) { fixture.AddVersion(u, version) })
			w.Pass(30 * time.Second)
			w.says("msg~preferred version of kind changed", map[string]int{"v1": 1, "v2": 2}[version])
			w.called(&since)
			w.is("")
			if made := w.Writes()[writes:]; len(made) > 0 {
				t.Errorf("the move to %s has written %v", version, made)
			}
		}
		w.change(fixture.NewThing("a.dev/v2", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.delete(fixture.NewThing("a.dev/v1", "two"))
		w.Pass(10 * time.Second)
		made := w.calls(&since)
		w.includes(made, "change of a.dev/v2 one (update)", "look of a.dev/v2 one (reconcile)", "unmake of a.dev/v2 two (delete)", "watch of a.dev/v2 two (deleted)")
		if slices.Contains(made, "greet of a.dev/v2 one (resume)") {
			t.Error("what was resumed is resumed again")
		}
	})
}

// Scenario 83: a category is taken away from a kind, and given back. Its handlers rest meanwhile, and what was done stays done.
func TestHandlersOfAKindThatLeavesItsCategoryArePaused(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnUpdate("change", fixture.Nothing[unstructured.Unstructured])
		every.OnResume("greet", fixture.Nothing[unstructured.Unstructured])
		every.OnEvent("watch", fixture.Nothing[unstructured.Unstructured])
	}
	categories := func(names ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(u.Object, names, "spec", "names", "categories")
		}
	}
	selecting(t, declare, func(w *selectingWorld) {
		since, definition := 0, fixture.DefineThings("a.dev", "categories: [tests]", "v1")
		w.restart(func() { w.create(definition.DeepCopy(), fixture.NewThing("a.dev/v1", "one")) })
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1 one (create)", "watch of a.dev/v1 one (listed)", "watch of a.dev/v1 one (modified)")
		w.change(definition, categories())
		w.Pass(10 * time.Second)
		w.change(fixture.NewThing("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Hour)
		w.called(&since)
		w.is("")
		w.change(definition, categories("others", "tests"))
		w.Pass(10 * time.Second)
		w.called(&since, "change of a.dev/v1 one (update)", "watch of a.dev/v1 one (modified)", "watch of a.dev/v1 one (modified)")
	})
}

// Scenario 86: a name of several kinds. None is served, the log and the readiness tell of all of them and what to do; and when one is left it
// is served.
func TestANameOfSeveralKinds(t *testing.T) {
	declare := func(op *einmal.Operator) {
		einmal.ForEvery(op, einmal.Selector{Name: "th"}).OnCreate("make", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since, other := 0, fixture.DefineThings("b.dev", "shortNames: [th]", "v1")
		w.restart(func() {
			w.create(fixture.DefineThings("a.dev", "shortNames: [th]", "v1"), other.DeepCopy())
			w.create(fixture.NewThing("a.dev/v1", "one"), fixture.NewThing("b.dev/v1", "one"))
		})
		w.Pass(time.Minute)
		w.called(&since)
		const told = "kinds called \"th\" are ambiguous (things.a.dev, things.b.dev), so none is served; add the group to the name, such as \"things.a.dev\""
		w.is(told)
		w.says("reason="+told, 1)
		w.delete(other.DeepCopy())
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1 one (create)")
		w.is("")
	})
}

// Scenario 86: a name of several kinds, one of which is of the core group: that one is meant.
func TestANameOfACoreKind(t *testing.T) {
	declare := func(op *einmal.Operator) {
		einmal.ForEvery(op, einmal.Selector{Name: "cm"}).OnCreate("make", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since := 0
		w.create(fixture.DefineThings("a.dev", "shortNames: [cm]", "v1"), fixture.NewThing("a.dev/v1", "one"))
		config := fixture.NewThing("v1", "two")
		config.SetKind("ConfigMap")
		delete(config.Object, "spec")
		w.create(config)
		w.Pass(time.Hour)
		w.is("")
		w.called(&since, "make of v1 two (create)")
	})
}

// Scenario 87: who handles everything, and says something about all of it, does not handle what it says, nor its own books.
func TestHandlersOfAllKindsDoNotTriggerThemselves(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Everything: true})
		every.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			c.Event(einmal.EventNormal, "Made", "made %s", c.Object.GetName())
			if c.Object.GetName() == "bad" {
				return einmal.Permanent(errors.New("not this one"))
			}
			return nil
		})
		every.OnEvent("watch", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since := 0
		w.create(fixture.DefineThings("a.dev", "", "v1"), fixture.NewThing("a.dev/v1", "one"), fixture.NewThing("a.dev/v1", "bad"))
		secret := fixture.NewThing("v1", "secret")
		secret.SetKind("Secret")
		delete(secret.Object, "spec")
		w.create(secret)
		w.Pass(time.Hour)
		w.is("")
		made := w.calls(&since)
		w.includes(made, "make of a.dev/v1 one (create)", "make of v1 secret (create)", "make of a.dev/v1 bad (create)", "make of v1 default (create)")
		if i := slices.IndexFunc(made, func(call string) bool {
			return strings.Contains(call, "events") || strings.Contains(call, fixture.Identity)
		}); i >= 0 {
			t.Errorf("called: %s", made[i])
		}
		written := len(w.Writes())
		w.Pass(6 * time.Hour)
		w.called(&since)
		if made := w.Writes()[written:]; len(made) > 0 {
			t.Errorf("six hours later these are written: %v", made)
		}
	})
}
