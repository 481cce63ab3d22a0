package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A lookup waits after the end of a call, not only after its beginning: a call that has timed out may still take effect.
func TestALookupWaitsAfterALongCall(t *testing.T) {
	var ended, looked time.Time
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		find := func(context.Context, string) (fixture.Account, bool, error) {
			looked = time.Now()
			return fixture.Account{Number: 7}, true, t.Run("look")
		}
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByLookup(find, func(context.Context, string) (fixture.Account, error) {
			<-time.After(2 * time.Minute)
			ended = time.Now()
			return fixture.Account{}, errors.Join(t.Run("open"), errors.New("timeout"))
		}))
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(5 * time.Minute)
		expectRan(w, ran, "open", "look")
		if waited := looked.Sub(ended); waited < 30*time.Second || waited > time.Minute {
			w.Errorf("the lookup was %s after the end of the call, want about 30 s", waited)
		}
	})
}

// An intent of a process whose clock was ahead by a day is looked up half a minute after another process has seen it.
func TestAnIntentOfAClockThatWasAheadIsNotWaitedFor(t *testing.T) {
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		find := func(context.Context, string) (fixture.Account, bool, error) {
			return fixture.Account{Number: 7}, true, t.Run("look")
		}
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByLookup(find, func(ctx context.Context, _ string) (fixture.Account, error) {
			if err := t.Run("open"); err != nil {
				return fixture.Account{}, err
			}
			<-ctx.Done()
			return fixture.Account{}, ctx.Err()
		}))
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(time.Second)
		w.Kill()
		rewriteRecord(w, func(stored string) string { return strings.ReplaceAll(stored, `"at":"2000-01-01`, `"at":"2000-01-02`) })
		w.Restart()
		w.Advance(time.Minute)
		expectRan(w, ran, "open", "look")
	})
}

// A process knows when its own call ended, but not when the call of another process ended that has declared the effect again.
func TestALookupWaitsForTheCallOfAnotherProcess(t *testing.T) {
	var again, looked time.Time
	make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
		find := func(context.Context, string) (fixture.Account, bool, error) {
			looked = time.Now()
			return fixture.Account{Number: 7}, !again.IsZero(), t.Run("look")
		}
		_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByLookup(find, func(context.Context, string) (fixture.Account, error) {
			err := errors.Join(t.Run("open"), errors.New("failed"))
			if c.Attempt > 1 {
				err = einmal.NotMade(einmal.RetryAfter(10*time.Minute, err))
			}
			return fixture.Account{}, err
		}))
		return err
	}
	stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
		w.Advance(10*time.Minute + 20*time.Second)
		expectRan(w, ran, "open", "look", "open")
		again = time.Now()
		rewriteRecord(w, func(stored string) string {
			declared := regexp.MustCompile(`"number":\d+,"by":"[^"]*","at":"[^"]*","void":true`)
			return declared.ReplaceAllString(stored, `"number":9,"by":"another","at":"`+again.UTC().Format(time.RFC3339)+`"`)
		})
		w.Advance(2 * time.Minute)
		expectRan(w, ran, "open", "look", "open", "look")
		if waited := looked.Sub(again); waited < 29*time.Second {
			w.Errorf("the lookup was %s after the declaration of the other process, want 30 s", waited)
		}
	})
}

// rewriteRecord rewrites the stored record of the Widget, as another process does.
func rewriteRecord(w *einmaltest.World, how func(string) string) {
	w.Helper()
	one := fixture.NewWidget("one")
	w.Get(one)
	stored := one.Status.Records.Records[fixture.Identity]
	changed := how(stored)
	if changed == stored {
		w.Fatalf("the record has no such intent: %s", stored)
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"records": map[string]string{fixture.Identity: changed}}})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.Client().Status().Patch(w.Context(), one, client.RawPatch(types.MergePatchType, text)); err != nil {
		w.Fatal(err)
	}
}

// An effect that was started in another recovery class was called without the means of this class: a user decides, unless it can be looked up.
func TestAnotherClassDoesNotRepeatACall(t *testing.T) {
	lost := func(t *fixture.Trail) func(context.Context, string) (fixture.Account, error) {
		return func(context.Context, string) (fixture.Account, error) {
			return fixture.Account{}, errors.Join(t.Run("open"), errors.New("no answer"))
		}
	}
	for name, test := range map[string]struct {
		now  func(t *fixture.Trail) einmal.Recovery[fixture.Account]
		asks bool
	}{
		"named": {func(t *fixture.Trail) einmal.Recovery[fixture.Account] { return einmal.RecoverByName("it", lost(t)) }, true},
		"stop": {func(t *fixture.Trail) einmal.Recovery[fixture.Account] {
			return einmal.RecoverByHand(func(ctx context.Context) (fixture.Account, error) { return lost(t)(ctx, "") })
		}, true},
		"findable": {func(t *fixture.Trail) einmal.Recovery[fixture.Account] {
			return einmal.RecoverByLookup(func(context.Context, string) (fixture.Account, bool, error) {
				return fixture.Account{Number: 7}, true, nil
			}, lost(t))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(ctx context.Context, c *einmal.Change[fixture.Widget], t *fixture.Trail) error {
				recovery := einmal.RecoverByKey(lost(t))
				if c.Attempt > 1 {
					recovery = test.now(t)
				}
				_, err := einmal.Effect(ctx, c, "account", recovery)
				return err
			}
			stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
				w.AllowUnfinished("make")
				w.Advance(10 * time.Minute)
				expectRan(w, ran, "open")
				if asked := fixture.UndecidedEffect(w, fixture.NewWidget("one")) != ""; asked != test.asks {
					w.Errorf("a person is asked: %t, want %t", asked, test.asks)
				}
			})
		})
	}
}
