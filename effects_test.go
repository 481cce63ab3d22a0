package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// opened is a call of a test that notes what it is given.
func opened(t *trail, number int) func(context.Context, string) (Account, error) {
	return func(_ context.Context, known string) (Account, error) {
		return Account{Number: number}, t.run("open " + known)
	}
}

// Design §7: the intent is stored before the call is made, conditionally, and the result after it.
func TestAnIntentIsStoredBeforeTheCall(t *testing.T) {
	for _, use := range carriers() {
		t.Run("record in the "+use.name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.AllowUnfinished("make")
				var during, token string
				one := &unstructured.Unstructured{}
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := newTestOperator(w)
					kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", use.kind))
					kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
						_, err := einmal.Effect(ctx, c, "account", einmal.Keyed(func(_ context.Context, known string) (Account, error) {
							now := read(w, one)
							token, during = known, use.record(now)
							return Account{Number: 7}, nil
						}))
						return errors.Join(err, errors.New("not yet"))
					})
					return op
				})
				one.SetAPIVersion(testGroup + "/v1")
				one.SetKind(use.kind)
				one.SetNamespace("default")
				one.SetName("one")
				w.Apply(use.manifest("one", 1))
				w.Advance(100 * time.Millisecond)
				const result = `"result":{"number":7}`
				if !strings.Contains(during, `"outcome":"pending"`) || !strings.Contains(during, `"token":"`+token+`"`) || strings.Contains(during, result) {
					w.Errorf("while it is called with %s the record is %s", token, during)
				}
				if after := use.record(read(w, one)); !strings.Contains(after, result) {
					w.Errorf("after the call the record is %s", after)
				}
			})
		})
	}
}

// Design §6, the write budget: an effect costs one write more than a step, however many there are at the same time.
func TestAnEffectCostsOneWriteMoreThanAStep(t *testing.T) {
	type handler = func(context.Context, *einmal.Change[unstructured.Unstructured]) error
	open := func(context.Context, string) (Account, error) { return Account{Number: 7}, nil }
	make := func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		_, err := einmal.Effect(ctx, c, "account", einmal.Keyed(open))
		return err
	}
	for _, use := range carriers() {
		for name, test := range map[string]struct {
			parts handler
			more  int
		}{
			"a step": {func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				_, err := einmal.StepResult(ctx, c, "account", func(ctx context.Context) (Account, error) { return open(ctx, "") })
				return err
			}, 0},
			"an effect": {make, 1},
			"an effect in a step": {func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				return einmal.Step(ctx, c, "outer", func(ctx context.Context) error { return make(ctx, c) })
			}, 1},
			"eight effects at the same time": {func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				together := &sync.WaitGroup{}
				together.Add(8)
				return einmal.Each(ctx, c, slices.Repeat([]int{0}, 8), counter(), func(ctx context.Context, _ int) error {
					together.Done()
					together.Wait()
					return make(ctx, c)
				})
			}, 1},
		} {
			t.Run(name+", record in the "+use.name, func(t *testing.T) {
				einmaltest.Run(t, func(w *einmaltest.World) {
					w.Start(func(*einmaltest.Process) *einmal.Operator {
						op := newTestOperator(w)
						kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", use.kind))
						handle := func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
							err := test.parts(ctx, c)
							return errors.Join(err, unstructured.SetNestedField(c.Object.Object, string(c.Reason), "status", "phase"))
						}
						kind.OnCreate("make", handle)
						kind.OnUpdate("remake", handle)
						return op
					})
					expectWrites(w, use.writes(1, 2)+test.more, func() { w.Apply(use.manifest("one", 1)) })
					expectWrites(w, use.writes(1, 2)+test.more, func() { w.Apply(use.manifest("one", 2)) })
				})
			})
		}
	}
}

// Design §6, §7: where the object was made anew meanwhile its intent is not written into the new one, and nothing is called for the
// old one.
func TestNothingIsCalledForAnObjectThatIsGone(t *testing.T) {
	slow := func(ctx context.Context, c *einmal.Change[Widget], t *trail) error {
		color := c.Object.Spec.Color
		if err := pause(ctx, 10*time.Second); err != nil {
			return err
		}
		_, err := einmal.Effect(ctx, c, "account", einmal.Named(color, opened(t, 7)))
		_, again := einmal.Effect(ctx, c, "another", einmal.Named(color, opened(t, 8)))
		return errors.Join(err, again)
	}
	stepping(t, slow, func(w *einmaltest.World, ran *trail) {
		w.Advance(5 * time.Second)
		w.Delete(newWidget())
		blue := newWidget()
		blue.Spec.Color = "blue"
		w.Create(blue)
		w.Advance(time.Minute)
		expectRan(w, ran, "open blue", "open blue")
	})
}

// A later release may choose another name: what was begun goes on under the first one. Another token would make another thing.
func TestACallIsRepeatedAsItWasIntended(t *testing.T) {
	type change = einmal.Change[Widget]
	call := func(c *change, t *trail) func(context.Context, string) (Account, error) {
		return func(ctx context.Context, known string) (Account, error) {
			account, err := opened(t, 7)(ctx, known)
			if c.Attempt < 4 {
				err = errors.New("no answer")
			}
			return account, err
		}
	}
	for name, recovery := range map[string]func(*change, *trail) einmal.Recovery[Account]{
		"keyed": func(c *change, t *trail) einmal.Recovery[Account] { return einmal.Keyed(call(c, t)) },
		"named": func(c *change, t *trail) einmal.Recovery[Account] {
			return einmal.Named(fmt.Sprintf("name %d", c.Attempt), call(c, t))
		},
		"findable": func(c *change, t *trail) einmal.Recovery[Account] {
			return einmal.Findable(func(context.Context, string) (Account, bool, error) { return Account{}, false, nil }, call(c, t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(ctx context.Context, c *change, t *trail) error {
				_, err := einmal.Effect(ctx, c, "account", recovery(c, t))
				return err
			}
			stepping(t, make, func(w *einmaltest.World, ran *trail) {
				w.Advance(time.Second)
				w.Restart()
				w.Advance(5 * time.Minute)
				if calls := ran.all(); len(calls) != 4 || len(slices.Compact(calls)) != 1 {
					w.Errorf("it was called as %q, want four times the same", calls)
				}
			})
		})
	}
}

// What a lookup finds is the result, and an error of it says nothing.
func TestWhatWasMadeIsFound(t *testing.T) {
	var seen Account
	make := func(ctx context.Context, c *einmal.Change[Widget], t *trail) (err error) {
		find := func(context.Context, string) (Account, bool, error) {
			if err := t.run(fmt.Sprintf("look in attempt %d", c.Attempt)); err != nil || c.Attempt == 2 {
				return Account{}, false, errors.Join(err, errors.New("no answer"))
			}
			return Account{Number: 7}, true, nil
		}
		seen, err = einmal.Effect(ctx, c, "account", einmal.Findable(find, func(context.Context, string) (Account, error) {
			return Account{}, errors.Join(t.run("open"), errors.New("no answer"))
		}))
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *trail) {
		w.Advance(20 * time.Second)
		expectRan(w, ran, "open") // Whoever is at the call has half a minute.
		w.Advance(5 * time.Minute)
		expectRan(w, ran, "open", "look in attempt 2", "look in attempt 3")
		if seen.Number != 7 {
			w.Errorf("the result is %+v", seen)
		}
	})
}

// Design §7, the class stop: nobody but a person knows, and each word of a person is about one call. Said is what the person says
// each time that one is asked.
func TestAPersonSaysWhatCameOfACall(t *testing.T) {
	type change = einmal.Change[Widget]
	lost := func(c *change) error { return fmt.Errorf("no answer in attempt %d", c.Attempt) }
	until := func(call int, fail func(*change) error) func(*change, int) error {
		return func(c *change, n int) error {
			if n < call {
				return fail(c)
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		fails func(*change, int) error
		said  []string
		calls int
		phase string
	}{
		"an answer is lost, it was made":        {until(9, lost), []string{`{"number":9}`}, 1, "account 9"},
		"its result does not matter":            {until(9, lost), []string{"done"}, 1, "account 0"},
		"words that are none":                   {until(9, lost), []string{"yes", `{"nummer":9}`, `{"number":9}`}, 1, "account 9"},
		"it was not made, and is called again":  {until(2, lost), []string{"again"}, 2, "account 7"},
		"it was not made twice":                 {until(3, lost), []string{"again", "again"}, 3, "account 7"},
		"a crash of the handler":                {func(*change, int) error { panic("a bug") }, []string{"done"}, 1, "account 0"},
		"the system says that nothing was made": {until(3, func(c *change) error { return einmal.NotMade(lost(c)) }), nil, 3, "account 7"},
	} {
		t.Run(name, func(t *testing.T) {
			stepping(t, openedByStop(test.fails), func(w *einmaltest.World, ran *trail) {
				sayInTurn(w, test.said)
				w.Advance(2 * time.Minute)
				phase, asked := phaseOf(w, newWidget()), askedBy(w, newWidget())
				if calls := len(ran.all()); calls != test.calls || phase != test.phase || asked != "" {
					w.Errorf("%d calls and phase %q, asked by %q; want %d and %q", calls, phase, asked, test.calls, test.phase)
				}
			})
		})
	}
}

// openedByStop is a handler that opens an account of which only a person can say whether it is open.
func openedByStop(fails func(*einmal.Change[Widget], int) error) func(context.Context, *einmal.Change[Widget], *trail) error {
	return func(ctx context.Context, c *einmal.Change[Widget], t *trail) error {
		account, err := einmal.Effect(ctx, c, "account", einmal.Stop(func(context.Context) (Account, error) {
			err := t.run("open")
			return Account{Number: 7}, errors.Join(err, fails(c, len(t.all())))
		}))
		if err == nil {
			c.Object.Status.Phase = fmt.Sprintf("account %d", account.Number)
		}
		return err
	}
}

// A word that is none of those that are known is told of, so that nobody waits for what comes of it, and nothing is called.
func TestAWordThatMeansNothingIsToldOf(t *testing.T) {
	told := ""
	make := func(ctx context.Context, c *einmal.Change[Widget], t *trail) error {
		_, err := einmal.Effect(ctx, c, "account", einmal.Stop(func(context.Context) (Account, error) {
			return Account{}, errors.Join(t.run("open"), errors.New("no answer"))
		}))
		told = fmt.Sprint(err)
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *trail) {
		w.AllowUnfinished("make")
		sayInTurn(w, []string{"yes"})
		w.Advance(2 * time.Minute)
		expectRan(w, ran, "open")
		if !strings.Contains(told, `"yes"`) || !strings.Contains(told, `"again"`) {
			w.Errorf("it says %s", told)
		}
	})
}

// sayInTurn says these words, one each time that a person is asked.
func sayInTurn(w *einmaltest.World, said []string) {
	for i, word := range said {
		w.Advance(2 * time.Minute)
		annotation := askedBy(w, newWidget())
		if annotation == "" {
			w.Fatalf("nobody is asked for the word %d: %v", i, w.Calls())
		}
		say(w, newWidget(), annotation, word)
	}
}

// What was begun in another class was called without what this one recovers by: a person decides, unless it can be looked up.
func TestAnotherClassDoesNotRepeatACall(t *testing.T) {
	lost := func(t *trail) func(context.Context, string) (Account, error) {
		return func(context.Context, string) (Account, error) {
			return Account{}, errors.Join(t.run("open"), errors.New("no answer"))
		}
	}
	for name, test := range map[string]struct {
		now  func(t *trail) einmal.Recovery[Account]
		asks bool
	}{
		"named": {func(t *trail) einmal.Recovery[Account] { return einmal.Named("it", lost(t)) }, true},
		"stop": {func(t *trail) einmal.Recovery[Account] {
			return einmal.Stop(func(ctx context.Context) (Account, error) { return lost(t)(ctx, "") })
		}, true},
		"findable": {func(t *trail) einmal.Recovery[Account] {
			return einmal.Findable(func(context.Context, string) (Account, bool, error) { return Account{Number: 7}, true, nil }, lost(t))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(ctx context.Context, c *einmal.Change[Widget], t *trail) error {
				recovery := einmal.Keyed(lost(t))
				if c.Attempt > 1 {
					recovery = test.now(t)
				}
				_, err := einmal.Effect(ctx, c, "account", recovery)
				return err
			}
			stepping(t, make, func(w *einmaltest.World, ran *trail) {
				w.AllowUnfinished("make")
				w.Advance(10 * time.Minute)
				expectRan(w, ran, "open")
				if asked := askedBy(w, newWidget()) != ""; asked != test.asks {
					w.Errorf("a person is asked: %t, want %t", asked, test.asks)
				}
			})
		})
	}
}

// A mistake is told before anything is called.
func TestMistakesWithEffectsNameTheRemedy(t *testing.T) {
	ran := func(context.Context, string) (Account, error) { panic("it ran") }
	for name, test := range map[string]struct {
		make func(context.Context, *einmal.Change[Widget]) error
		want []string
	}{
		"no recovery":        {effectOf("a", einmal.Recovery[Account]{}), []string{`effect "a"`, "Keyed, Named, Findable and Stop"}},
		"no function":        {effectOf("a", einmal.Keyed[Account](nil)), []string{"without a function"}},
		"no lookup":          {effectOf("a", einmal.Findable(nil, ran)), []string{"without a function"}},
		"no name":            {effectOf("a", einmal.Named("", ran)), []string{"1 to 1024 bytes"}},
		"an id that is none": {effectOf("a/b", einmal.Keyed(ran)), []string{`"a/b"`, "letters"}},
		"a result that hides": {
			effectOf("a", einmal.Keyed(func(context.Context, string) (Secretive, error) { panic("it ran") })),
			[]string{"einmal_test.Secretive", "hides itself", "in a Secret"},
		},
		"a result that is no struct": {
			effectOf("a", einmal.Keyed(func(context.Context, string) (string, error) { panic("it ran") })),
			[]string{"string", "declare a struct type"},
		},
		"an id twice": {func(ctx context.Context, c *einmal.Change[Widget]) error {
			none := func(context.Context) error { return nil }
			return errors.Join(einmal.Step(ctx, c, "a", none), effectOf("a", einmal.Keyed(ran))(ctx, c))
		}, []string{`"a"`, "its own"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			make := func(ctx context.Context, c *einmal.Change[Widget], _ *trail) error {
				told = test.make(ctx, c)
				return nil
			}
			stepping(t, make, func(w *einmaltest.World, _ *trail) {
				w.Advance(time.Minute)
				for _, part := range test.want {
					if told == nil || !strings.Contains(told.Error(), part) {
						w.Errorf("%v does not say %q", told, part)
					}
				}
			})
		})
	}
}

func effectOf[R any](id string, recovery einmal.Recovery[R]) func(context.Context, *einmal.Change[Widget]) error {
	return func(ctx context.Context, c *einmal.Change[Widget]) error {
		_, err := einmal.Effect(ctx, c, id, recovery)
		return err
	}
}

// There are no effects where nothing is recorded.
func TestEffectsNeedARecord(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		var told error
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator(w)
			einmal.For[Widget](op).Reconcile("sync", func(ctx context.Context, c *einmal.Change[Widget]) error {
				told = effectOf("a", einmal.Keyed(func(context.Context, string) (Account, error) { panic("it ran") }))(ctx, c)
				return nil
			})
			return op
		})
		w.Create(newWidget())
		w.Advance(time.Second)
		if told == nil || !strings.Contains(told.Error(), "nothing is recorded of a handler of reconcile") || !strings.Contains(told.Error(), "OnCreate") {
			w.Errorf("told %v", told)
		}
	})
}
