package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// stepping runs an operator with one create handler on a widget, and lets use act there. Steps note that they ran.
func stepping(t *testing.T, make func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error, use func(*einmaltest.World, *fixture.Trail)) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		ran := &fixture.Trail{}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error { return make(ctx, c, ran) })
			return op
		})
		w.Advance(time.Second) // What is there at the start may have been handled before.
		w.Create(fixture.NewWidget("one"))
		use(w, ran)
	})
}

// phased is a step that says in the status that it is done.
func phased(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail, id string) error {
	return einmal.Step(ctx, c, id, func(context.Context) error {
		c.Object.Status.Phase = id + " is done"
		return t.Run(id)
	})
}

func expectRan(w *einmaltest.World, t *fixture.Trail, want ...string) {
	w.Helper()
	if got := t.All(); !slices.Equal(got, want) {
		w.Errorf("ran %q, want %q", got, want)
	}
}

func expectSaved(w *einmaltest.World, want string, writes int) {
	w.Helper()
	one := fixture.NewWidget("one")
	if w.Get(one); one.Status.Phase != want || len(w.Writes()) != writes {
		w.Errorf("the phase is %q after %q; want %q after %d writes", one.Status.Phase, w.Writes(), want, writes)
	}
}

// The result of a step and its changes of the object are saved within half a second.
func TestAStepIsSavedWhileItsHandlerGoesOn(t *testing.T) {
	long := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		for _, id := range []string{"a", "b"} {
			if err := phased(ctx, c, t, id); err != nil {
				return err
			}
		}
		if err := fixture.Pause(ctx, time.Minute); err != nil {
			return err
		}
		return errors.Join(phased(ctx, c, t, "c"), fixture.Pause(ctx, time.Minute))
	}
	stepping(t, long, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(10 * time.Second)
		expectSaved(w, "b is done", 1)
		w.Kill()
		w.Restart()
		w.Advance(3 * time.Minute)
		expectRan(w, ran, "a", "b", "c")
		expectSaved(w, "c is done", 3)
		calls := w.Calls()
		if last := calls[len(calls)-1]; last.Attempt != 1 || last.Outcome != "done" {
			w.Errorf("the last call is %s", last)
		}
	})
}

// A crash before that runs the step again, with its changes.
func TestACrashRightAfterAStepRunsItAgain(t *testing.T) {
	long := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		return errors.Join(phased(ctx, c, t, "a"), fixture.Pause(ctx, time.Minute))
	}
	stepping(t, long, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(100 * time.Millisecond)
		w.Kill()
		w.Restart()
		w.Advance(3 * time.Minute)
		expectRan(w, ran, "a", "a")
		expectSaved(w, "a is done", 2)
	})
}

// A handler with steps costs the same number of writes as one without: they are saved with its outcome.
func TestStepsCostNoWriteOfTheirOwn(t *testing.T) {
	for _, use := range fixture.Carriers() {
		for name, steps := range map[string]int{"without steps": 0, "with steps": 5} {
			t.Run(name+", record in the "+use.Name, func(t *testing.T) {
				einmaltest.Run(t, func(w *einmaltest.World) {
					w.Start(func(*einmaltest.Process) *einmal.Operator {
						op := fixture.NewOperator()
						failingInSteps(einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind)), steps)
						return op
					})
					expectWrites(w, use.Writes(4, 5), func() { w.Apply(use.Manifest("one", 1)) })
					expectWrites(w, 1, func() { w.Apply(use.Manifest("one", 2)) })
				})
			})
		}
	}
}

// failingInSteps declares a creation that fails three times after some steps and then sets the status, and an update with
// as many steps.
func failingInSteps(kind *einmal.Kind[unstructured.Unstructured], steps int) {
	make := func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		for i := range steps {
			if err := einmal.Step(ctx, c, fmt.Sprint(i), func(context.Context) error { return nil }); err != nil {
				return err
			}
		}
		if c.Reason == einmal.ReasonCreate && c.Attempt <= 3 {
			return errors.New("not yet")
		}
		return unstructured.SetNestedField(c.Object.Object, "made", "status", "phase")
	}
	kind.OnCreate("make", make)
	kind.OnUpdate("remake", make)
}

func expectWrites(w *einmaltest.World, want int, do func()) {
	w.Helper()
	before := len(w.Writes())
	do()
	w.Advance(time.Minute)
	if made := w.Writes()[before:]; len(made) != want {
		w.Errorf("%d writes, want %d:\n%s", len(made), want, strings.Join(made, "\n"))
	}
}

// The unfinished changes before a panic are not written; those of earlier steps are complete and are written.
func TestAPanicKeepsTheStepsBeforeIt(t *testing.T) {
	panics := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		if err := phased(ctx, c, t, "a"); err != nil {
			return err
		}
		return einmal.Step(ctx, c, "b", func(context.Context) error {
			if err := t.Run("b"); err != nil || c.Attempt < 3 {
				c.Object.Status.Phase = "b is half done"
				panic("a bug")
			}
			c.Object.Status.Phase += ", b too"
			return nil
		})
	}
	stepping(t, panics, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(100 * time.Millisecond)
		expectSaved(w, "a is done", 1)
		w.Advance(time.Minute)
		expectRan(w, ran, "a", "b", "b", "b")
		expectSaved(w, "a is done, b too", 3)
	})
}

// A step whose changes the API server refuses is not done; others are.
func TestAStepWhoseChangesAreRefusedIsMadeAgain(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at the end": 0, "while the handler goes on": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			paint := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
				err := einmal.Step(ctx, c, "outside", func(context.Context) error { return t.Run("outside") })
				if err != nil {
					return err
				}
				err = einmal.Step(ctx, c, "paint", func(context.Context) error {
					if c.Object.Spec.Color = "red"; c.Attempt == 1 {
						c.Object.Spec.Color = strings.Repeat("red", 10)
					}
					return t.Run("paint")
				})
				return errors.Join(err, fixture.Pause(ctx, takes))
			}
			stepping(t, paint, func(w *einmaltest.World, ran *fixture.Trail) {
				w.Advance(time.Minute)
				expectRan(w, ran, "outside", "paint", "paint")
				one := fixture.NewWidget("one")
				if w.Get(one); one.Spec.Color != "red" {
					w.Errorf("the color is %q", one.Spec.Color)
				}
			})
		})
	}
}

// Secretive hides itself from logs.
type Secretive struct {
	Text string `json:"text"`
}

// LogValue hides the text.
func (Secretive) LogValue() slog.Value { return slog.StringValue("***") }

// Made is a result with a time, which may be recorded.
type Made struct {
	At   time.Time         `json:"at"`
	By   fixture.Part      `json:"by"`
	More map[string]string `json:"more,omitempty"`
}

// A recorded result is a named, non-secret type; a redacting value refuses to be recorded.
func TestMistakesWithStepsNameTheRemedy(t *testing.T) {
	type change = einmal.Change[fixture.Widget]
	none := func(context.Context) error { return nil }
	for name, test := range map[string]struct {
		make func(context.Context, *change) error
		want []string
	}{
		"an id that is none": {func(ctx context.Context, c *change) error { return einmal.Step(ctx, c, "a/b", none) }, []string{`"a/b"`, "letters"}},
		"an id twice": {func(ctx context.Context, c *change) error {
			return errors.Join(einmal.Step(ctx, c, "a", none), einmal.Step(ctx, c, "a", none))
		}, []string{`"a"`, "its own id"}},
		"steps at the same time": {func(ctx context.Context, c *change) error {
			return einmal.Step(ctx, c, "a", func(context.Context) error { return einmal.Step(ctx, c, "b", none) })
		}, []string{`"b"`, `"a"`, "use Each"}},
		"a text":                           {result[string](""), []string{"string", "is not a named struct"}},
		"a pointer":                        {result[*fixture.Part](nil), []string{"*fixture.Part", "is not a named struct"}},
		"a type without a name":            {result[struct{ A string }](struct{ A string }{}), []string{"is not a named struct"}},
		"no fields":                        {result[struct1](struct1{}), []string{"export its fields"}},
		"a type that hides":                {result[Secretive](Secretive{}), []string{"virtual_test.Secretive", "redacts itself", "in a Secret"}},
		"a field that hides":               {result[struct2](struct2{}), []string{"virtual_test.Secretive", "redacts itself", "in a Secret"}},
		"a field named a secret":           {result[struct3](struct3{}), []string{"password", "in a Secret"}},
		"a value that looks like a secret": {result(fixture.Part{Name: "postgres://me:hunter2@host"}), []string{"looks like a secret"}},
		"a result that is too large":       {result(fixture.Part{Name: strings.Repeat("x", 5000)}), []string{"5012 bytes", "4096", "object of its own"}},
		"too many steps": {func(ctx context.Context, c *change) error {
			return einmal.Each(ctx, c, make([]int, 5000), counter(), func(context.Context, int) error { return nil })
		}, []string{"32768 bytes", "fewer and larger"}},
		"two items with one key": {func(ctx context.Context, c *change) error {
			return einmal.Each(ctx, c, []string{"x", "y", "x"}, strings.Clone, func(context.Context, string) error { return errors.New("it ran") })
		}, []string{`"x"`, "items 0 and 2", "its own"}},
		"an empty key": {func(ctx context.Context, c *change) error {
			return einmal.Each(ctx, c, []string{"x", ""}, strings.Clone, func(context.Context, string) error { return errors.New("it ran") })
		}, []string{"item 1", "1 to 253 bytes"}},
		"an item that changes the object": {func(ctx context.Context, c *change) error {
			return einmal.Each(ctx, c, []string{"x"}, strings.Clone, func(context.Context, string) error { c.Object.Status.Phase = "x"; return nil })
		}, []string{"changed Object", "after Each"}},
		"a finalizer": {func(ctx context.Context, c *change) error {
			return einmal.Step(ctx, c, "a", func(context.Context) error { c.Object.Finalizers = []string{"a/b"}; return nil })
		}, []string{"metadata.finalizers", "OnDelete"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			make := func(ctx context.Context, c *change, _ *fixture.Trail) error {
				told = test.make(ctx, c)
				return nil
			}
			stepping(t, make, func(w *einmaltest.World, _ *fixture.Trail) {
				w.AllowUnfinished("make")
				w.Advance(time.Minute)
				w.Stop() // Some are tried again.
				for _, part := range test.want {
					if told == nil || !strings.Contains(told.Error(), part) {
						w.Errorf("%v does not say %q", told, part)
					}
				}
			})
		})
	}
}

type struct1 struct{ _ string }

type struct2 struct {
	List []map[string]Secretive `json:"list"`
}

type struct3 struct {
	Password string `json:"password,omitempty"`
}

// result is a handler with a step that gives this.
func result[R any](given R) func(context.Context, *einmal.Change[fixture.Widget]) error {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		_, err := einmal.StepResult(ctx, c, "a", func(context.Context) (R, error) { return given, nil })
		return err
	}
}

func counter() func(int) string {
	n := 0
	return func(int) string { n++; return fmt.Sprintf("item-%d", n) }
}

// The result of a step is the same when it is made and when it is read from the record.
func TestAResultIsTheSameInEachAttempt(t *testing.T) {
	var seen []string
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], _ *fixture.Trail) error {
		given, err := einmal.StepResult(ctx, c, "a", func(context.Context) (Made, error) {
			return Made{At: time.Now(), By: fixture.Part{Name: "<me> & ü"}, More: map[string]string{"attempt": fmt.Sprint(c.Attempt)}}, nil
		})
		if seen = append(seen, fmt.Sprintf("%+v", given)); err == nil && c.Attempt < 3 {
			err = errors.New("not yet")
		}
		return err
	}
	stepping(t, make, func(w *einmaltest.World, _ *fixture.Trail) {
		w.Advance(time.Second)
		w.Restart()
		w.Advance(time.Minute)
		if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] || !strings.Contains(seen[0], "attempt:1") {
			w.Errorf("it was seen as %q", seen)
		}
	})
}

// Items run concurrently, no more of them than configured, and a panic of one is its failure.
func TestItemsRunAtTheSameTime(t *testing.T) {
	for name, test := range map[string]struct {
		options []einmal.CreateOption
		takes   time.Duration
	}{
		"eight by default": {nil, 3 * time.Minute},
		"five, if asked":   {[]einmal.CreateOption{einmal.Concurrency(5)}, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				var took time.Duration
				var failed error
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := fixture.NewOperator()
					einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
						begun := time.Now()
						failed = einmal.Each(ctx, c, make([]int, 20), counter(), panicsLater)
						took = time.Since(begun)
						return nil
					}, test.options...)
					return op
				})
				w.Create(fixture.NewWidget("one"))
				w.Advance(10 * time.Minute)
				told := fmt.Sprint(failed)
				if took != test.takes || strings.Count(told, "panic: a bug") != 20 || !strings.Contains(told, `step "item-20"`) {
					w.Errorf("20 items of a minute took %s, want %s, and failed with %s", took, test.takes, told)
				}
			})
		})
	}
}

func panicsLater(ctx context.Context, _ int) error {
	if err := fixture.Pause(ctx, time.Minute); err != nil {
		return err
	}
	panic("a bug")
}

// Steps are refused in handlers without a record.
func TestStepsNeedARecord(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("watch", "sync")
		var told []string
		step := func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			err := einmal.Step(ctx, c, "a", func(context.Context) error { panic("it ran") })
			told = append(told, fmt.Sprint(err))
			return einmal.Permanent(err)
		}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.Reconcile("sync", step)
			widgets.OnEvent("watch", step)
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Second)
		if all := strings.Join(told, "\n"); len(told) != 2 || strings.Count(all, "have no record") != 2 {
			w.Errorf("told %q", told)
		}
	})
}
