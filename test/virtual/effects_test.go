package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// opened is a call of a test that notes what it is given.
func opened(t *fixture.Trail, number int) func(context.Context, string) (fixture.Account, error) {
	return func(_ context.Context, known string) (fixture.Account, error) {
		return fixture.Account{Number: number}, t.Run("open " + known)
	}
}

// The intent is stored before the call, conditionally, and the result after it.
func TestAnIntentIsStoredBeforeTheCall(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			var during, token string
			read := func() string { return "" }
			declare := func(op *einmal.Operator) {
				kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
				kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
					_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(_ context.Context, known string) (fixture.Account, error) {
						token, during = known, read()
						return fixture.Account{Number: 7}, nil
					}))
					return errors.Join(err, errors.New("not yet"))
				})
			}
			virtually(t, fixture.NewLog(t), declare, func(t *testing.T, w *virtualWorld) {
				w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					if r.Method == http.MethodPatch {
						<-time.After(10 * time.Millisecond) // So that a call before the write is one, however fast the write is.
					}
					next.ServeHTTP(answer, r)
				})
				one := &unstructured.Unstructured{}
				fixture.Must(t, yaml.Unmarshal([]byte(use.Manifest("one", 1)), &one.Object))
				one.SetNamespace("default")
				read = func() string {
					found := one.DeepCopy()
					fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), found))
					return use.Record(found)
				}
				fixture.Must(t, w.User.Create(t.Context(), one.DeepCopy()))
				w.Pass(200 * time.Millisecond)
				const result = `"result":{"number":7}`
				if !strings.Contains(during, `"outcome":"pending"`) || !strings.Contains(during, `"token":"`+token+`"`) || strings.Contains(during, result) {
					t.Errorf("while it is called with %s the record is %s", token, during)
				}
				if after := read(); !strings.Contains(after, result) {
					t.Errorf("after the call the record is %s", after)
				}
			})
		})
	}
}

// The write budget: an effect costs one write more than a step, however many effects run concurrently.
func TestAnEffectCostsOneWriteMoreThanAStep(t *testing.T) {
	type handler = func(context.Context, *einmal.Change[unstructured.Unstructured]) error
	open := func(context.Context, string) (fixture.Account, error) { return fixture.Account{Number: 7}, nil }
	make := func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(open))
		return err
	}
	for _, use := range fixture.Carriers() {
		for name, test := range map[string]struct {
			parts handler
			more  int
		}{
			"a step": {func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				_, err := einmal.StepResult(ctx, c, "account", func(ctx context.Context) (fixture.Account, error) { return open(ctx, "") })
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
			t.Run(name+", record in the "+use.Name, func(t *testing.T) {
				einmaltest.Run(t, func(w *einmaltest.World) {
					w.Start(func(*einmaltest.Process) *einmal.Operator {
						op := fixture.NewOperator()
						kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
						handle := func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
							err := test.parts(ctx, c)
							return errors.Join(err, unstructured.SetNestedField(c.Object.Object, string(c.Reason), "status", "phase"))
						}
						kind.OnCreate("make", handle)
						kind.OnUpdate("remake", handle)
						return op
					})
					expectWrites(w, use.Writes(1, 2)+test.more, func() { w.Apply(use.Manifest("one", 1)) })
					expectWrites(w, use.Writes(1, 2)+test.more, func() { w.Apply(use.Manifest("one", 2)) })
				})
			})
		}
	}
}

// When the object was re-created in the meantime, the intent is not written into the new object, and nothing is called for the old one.
func TestNothingIsCalledForAnObjectThatIsGone(t *testing.T) {
	slow := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		color := c.Object.Spec.Color
		if err := fixture.Pause(ctx, 10*time.Second); err != nil {
			return err
		}
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByName(color, opened(t, 7)))
		_, again := einmal.Effect(ctx, c, "another", einmal.RecoverByName(color, opened(t, 8)))
		return errors.Join(err, again)
	}
	stepping(t, slow, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(5 * time.Second)
		w.Delete(fixture.NewWidget("one"))
		blue := fixture.NewWidget("one")
		blue.Spec.Color = "blue"
		w.Create(blue)
		w.Advance(time.Minute)
		expectRan(w, ran, "open blue", "open blue")
	})
}

// A later release may choose another name: a started effect continues under its first name and token, because another token would create a
// second thing.
func TestACallIsRepeatedAsItWasIntended(t *testing.T) {
	type change = einmal.Change[fixture.Widget]
	call := func(c *change, t *fixture.Trail) func(context.Context, string) (fixture.Account, error) {
		return func(ctx context.Context, known string) (fixture.Account, error) {
			account, err := opened(t, 7)(ctx, known)
			if c.Attempt < 4 {
				err = errors.New("no answer")
			}
			return account, err
		}
	}
	for name, recovery := range map[string]func(*change, *fixture.Trail) einmal.Recovery[fixture.Account]{
		"keyed": func(c *change, t *fixture.Trail) einmal.Recovery[fixture.Account] {
			return einmal.RecoverByKey(call(c, t))
		},
		"named": func(c *change, t *fixture.Trail) einmal.Recovery[fixture.Account] {
			return einmal.RecoverByName(fmt.Sprintf("name %d", c.Attempt), call(c, t))
		},
		"findable": func(c *change, t *fixture.Trail) einmal.Recovery[fixture.Account] {
			return einmal.RecoverByLookup(func(context.Context, string) (fixture.Account, bool, error) { return fixture.Account{}, false, nil }, call(c, t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(ctx context.Context, c *change, t *fixture.Trail) error {
				_, err := einmal.Effect(ctx, c, "account", recovery(c, t))
				return err
			}
			stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
				w.Advance(time.Second)
				w.Restart()
				w.Advance(5 * time.Minute)
				if calls := ran.All(); len(calls) != 4 || len(slices.Compact(calls)) != 1 {
					w.Errorf("it was called as %q, want four times the same", calls)
				}
			})
		})
	}
}

// The object that a lookup finds is the result; an error of the lookup says nothing about the effect.
func TestAnEffectThatIsFoundIsNotRepeated(t *testing.T) {
	var seen fixture.Account
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) (err error) {
		find := func(context.Context, string) (fixture.Account, bool, error) {
			if err := t.Run(fmt.Sprintf("look in attempt %d", c.Attempt)); err != nil || c.Attempt == 2 {
				return fixture.Account{}, false, errors.Join(err, errors.New("no answer"))
			}
			return fixture.Account{Number: 7}, true, nil
		}
		seen, err = einmal.Effect(ctx, c, "account", einmal.RecoverByLookup(find, func(context.Context, string) (fixture.Account, error) {
			return fixture.Account{}, errors.Join(t.Run("open"), errors.New("no answer"))
		}))
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(20 * time.Second)
		expectRan(w, ran, "open") // The call may take half a minute.
		w.Advance(5 * time.Minute)
		expectRan(w, ran, "open", "look in attempt 2", "look in attempt 3")
		if seen.Number != 7 {
			w.Errorf("the result is %+v", seen)
		}
	})
}

// The class stop: only a user knows the result, and each answer is about one call. Said lists the answers of the user, in order.
func TestAUserReportsTheResultOfACall(t *testing.T) {
	type change = einmal.Change[fixture.Widget]
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
			stepping(t, openedByStop(test.fails), func(w *einmaltest.World, ran *fixture.Trail) {
				sayInTurn(w, test.said)
				w.Advance(2 * time.Minute)
				phase, asked := fixture.Phase(w, fixture.NewWidget("one")), fixture.UndecidedEffect(w, fixture.NewWidget("one"))
				if calls := len(ran.All()); calls != test.calls || phase != test.phase || asked != "" {
					w.Errorf("%d calls and phase %q, asked by %q; want %d and %q", calls, phase, asked, test.calls, test.phase)
				}
			})
		})
	}
}

// openedByStop is a handler that opens an account of which only a person can say whether it is open.
func openedByStop(fails func(*einmal.Change[fixture.Widget], int) error) func(context.Context, *einmal.Change[fixture.Widget], *fixture.Trail) error {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		account, err := einmal.Effect(ctx, c, "account", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
			err := t.Run("open")
			return fixture.Account{Number: 7}, errors.Join(err, fails(c, len(t.All())))
		}))
		if err == nil {
			c.Object.Status.Phase = fmt.Sprintf("account %d", account.Number)
		}
		return err
	}
}

// An unknown annotation value is reported, so that no user waits for its effect, and nothing is called.
func TestAnUnknownAnnotationValueIsReported(t *testing.T) {
	told := ""
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
			return fixture.Account{}, errors.Join(t.Run("open"), errors.New("no answer"))
		}))
		told = fmt.Sprint(err)
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
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
		annotation := fixture.UndecidedEffect(w, fixture.NewWidget("one"))
		if annotation == "" {
			w.Fatalf("no user is asked for answer %d: %v", i, w.Calls())
		}
		fixture.Annotate(w, fixture.NewWidget("one"), annotation, word)
	}
}

// A mistake is reported before anything is called.
func TestMistakesWithEffectsNameTheRemedy(t *testing.T) {
	ran := func(context.Context, string) (fixture.Account, error) { panic("it ran") }
	for name, test := range map[string]struct {
		make func(context.Context, *einmal.Change[fixture.Widget]) error
		want []string
	}{
		"no recovery":        {effectOf("a", einmal.Recovery[fixture.Account]{}), []string{`effect "a"`, "recovery is missing", "use RecoverByKey, RecoverByName"}},
		"no function":        {effectOf("a", einmal.RecoverByKey[fixture.Account](nil)), []string{"nil function"}},
		"no lookup":          {effectOf("a", einmal.RecoverByLookup(nil, ran)), []string{"nil function"}},
		"no name":            {effectOf("a", einmal.RecoverByName("", ran)), []string{"1 to 1024 bytes"}},
		"an id that is none": {effectOf("a/b", einmal.RecoverByKey(ran)), []string{`"a/b"`, "letters"}},
		"a result that hides": {
			effectOf("a", einmal.RecoverByKey(func(context.Context, string) (Secretive, error) { panic("it ran") })),
			[]string{"virtual_test.Secretive", "redacts itself", "in a Secret"},
		},
		"a result that is no struct": {
			effectOf("a", einmal.RecoverByKey(func(context.Context, string) (string, error) { panic("it ran") })),
			[]string{"string", "is not a named struct", "declare one"},
		},
		"an id twice": {func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			none := func(context.Context) error { return nil }
			return errors.Join(einmal.Step(ctx, c, "a", none), effectOf("a", einmal.RecoverByKey(ran))(ctx, c))
		}, []string{`"a"`, "its own"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			make := func(ctx context.Context, c *einmal.Change[fixture.Widget], _ *fixture.Trail) error {
				told = test.make(ctx, c)
				return nil
			}
			stepping(t, make, func(w *einmaltest.World, _ *fixture.Trail) {
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

func effectOf[R any](id string, recovery einmal.Recovery[R]) func(context.Context, *einmal.Change[fixture.Widget]) error {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		_, err := einmal.Effect(ctx, c, id, recovery)
		return err
	}
}

// There are no effects where nothing is recorded.
func TestEffectsNeedARecord(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		var told error
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Reconcile("sync", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				told = effectOf("a", einmal.RecoverByKey(func(context.Context, string) (fixture.Account, error) { panic("it ran") }))(ctx, c)
				return nil
			})
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Second)
		if told == nil || !strings.Contains(told.Error(), "handlers for the reason reconcile have no record") || !strings.Contains(told.Error(), "OnCreate") {
			w.Errorf("told %v", told)
		}
	})
}
