package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

func newDeck() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fixture.DeckVersion, "kind": "Deck", "metadata": map[string]any{"namespace": "default", "name": "one"},
	}}
}

// decks runs an operator of decks in virtual time.
func decks(t *testing.T, declare func(*einmal.Kind[fixture.Deck]), use func(w *einmaltest.World)) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.DecksOperator, einmal.CRDs([]byte(fixture.DefineFreeKind("Deck"))))
			declare(einmal.For[fixture.Deck](op, einmal.GVK("field.example.com", "v1", "Deck")))
			return op
		})
		use(w)
	})
}

// appendSlowly appends an item to a list of the spec and to one of the status after five seconds.
func appendSlowly(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(5 * time.Second):
	}
	c.Object.Spec.Plugins = append(c.Object.Spec.Plugins, "ours")
	c.Object.Status.Seen = append(c.Object.Status.Seen, "ours")
	return nil
}

// holds compares a part of the deck with its JSON.
func holds(w *einmaltest.World, want string, path ...string) {
	w.Helper()
	found := newDeck()
	if !w.Get(found) {
		w.Fatal("the deck is gone")
	}
	value, _, _ := unstructured.NestedFieldNoCopy(found.Object, path...)
	text, err := json.Marshal(value)
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		w.Errorf("%s: %s", strings.Join(path, "."), diff)
	}
}

// called returns which handlers ran.
func called(w *einmaltest.World) []string {
	var found []string
	for _, call := range w.Calls() {
		found = append(found, call.Handler)
	}
	return found
}

// Scenario 58, for lists without keys: what another client appends while a handler runs stays, and the handler runs once.
func TestAnItemThatAnotherClientAppendsIsKept(t *testing.T) {
	decks(t, func(kind *einmal.Kind[fixture.Deck]) { kind.OnCreate("add", appendSlowly) }, func(w *einmaltest.World) {
		w.Apply(strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1))
		w.Advance(2 * time.Second)
		w.Patch(newDeck(), `{"spec":{"plugins":["first","theirs"]}}`)
		theirs := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"seen":["theirs"]}}`))
		if err := w.Client().Status().Patch(w.Context(), newDeck(), theirs); err != nil {
			w.Fatal(err)
		}
		w.Advance(time.Minute)
		holds(w, `["first","theirs","ours"]`, "spec", "plugins")
		holds(w, `["theirs","ours"]`, "status", "seen")
		if got := called(w); !slices.Equal(got, []string{"add"}) {
			w.Errorf("called %q", got)
		}
	})
}

// Where another client has changed the item that a handler changes, the handler runs again on the newer list. Other handlers do not.
func TestAHandlerRunsAgainWhenAnotherClientChangedTheSameItem(t *testing.T) {
	replace := func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
		if err := appendSlowly(ctx, c); err != nil {
			return err
		}
		c.Object.Spec.Plugins = []string{c.Object.Spec.Plugins[0] + "+"}
		return nil
	}
	decks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.OnCreate("count", func(_ context.Context, c *einmal.Change[fixture.Deck]) error {
			c.Object.Status.Count++
			return nil
		})
		kind.OnCreate("replace", replace)
	}, func(w *einmaltest.World) {
		w.Apply(strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1))
		w.Advance(2 * time.Second)
		w.Patch(newDeck(), `{"spec":{"plugins":["second"]}}`)
		w.Advance(time.Minute)
		holds(w, `["second+"]`, "spec", "plugins")
		holds(w, `["ours"]`, "status", "seen")
		holds(w, `1`, "status", "count")
		if got := called(w); !slices.Equal(got, []string{"count", "replace", "replace"}) {
			w.Errorf("called %q", got)
		}
	})
}

// A handler that must not run again fails, and the list of the other client stays.
func TestAHandlerWithOneAttemptFailsWhenAnotherClientChangedTheSameItem(t *testing.T) {
	decks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.OnUpdate("replace", func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
			err := appendSlowly(ctx, c)
			c.Object.Spec.Plugins = []string{"ours"}
			return err
		}, einmal.Fields("spec.limit"), einmal.MaxAttempts(1))
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("replace")
		w.Apply(strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1))
		w.Advance(time.Minute)
		w.Patch(newDeck(), `{"spec":{"limit":2}}`)
		w.Advance(2 * time.Second)
		w.Patch(newDeck(), `{"spec":{"plugins":["second"]}}`)
		w.Advance(time.Minute)
		holds(w, `["second"]`, "spec", "plugins")
		const why = "another client changed the same items of the list spec.plugins while the handler ran"
		if told := eventsOf(w); !slices.ContainsFunc(told, func(line string) bool { return strings.Contains(line, why) }) {
			w.Errorf("events: %q", told)
		}
	})
}

// What a step has changed is saved while its handler goes on, and what the handler changes later is added to that.
func TestStepsAppendToAListThatOthersAppendTo(t *testing.T) {
	decks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.OnCreate("add", func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
			if err := einmal.Step(ctx, c, "first", func(context.Context) error {
				c.Object.Spec.Plugins = append(c.Object.Spec.Plugins, "step")
				return nil
			}); err != nil {
				return err
			}
			return appendSlowly(ctx, c)
		})
	}, func(w *einmaltest.World) {
		w.Apply(strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1))
		w.Advance(4 * time.Second)
		holds(w, `["first","step"]`, "spec", "plugins")
		w.Patch(newDeck(), `{"spec":{"plugins":["theirs","step"]}}`)
		w.Advance(time.Minute)
		holds(w, `["theirs","step","ours"]`, "spec", "plugins")
	})
}

// A daemon that changes an item which another client has changed gets an error, and can go on with the newer list.
func TestADaemonIsToldThatAnotherClientChangedTheSameItem(t *testing.T) {
	var told []error
	decks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.Daemon("watch", func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
			if len(told) == 0 {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
			}
			c.Object.Spec.Plugins[0] += "+"
			err := c.Sync(ctx)
			told = append(told, err)
			if err == nil {
				<-c.Stopping()
			}
			return err
		})
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("watch")
		w.Apply(strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1))
		w.Advance(2 * time.Second)
		w.Patch(newDeck(), `{"spec":{"plugins":["second"]}}`)
		w.Advance(time.Minute)
		holds(w, `["second+"]`, "spec", "plugins")
		if len(told) != 2 || told[0] == nil || !strings.Contains(told[0].Error(), "spec.plugins") || errors.Join(told[1:]...) != nil {
			w.Errorf("told %v", told)
		}
	})
}

// A change of one field of an item leaves everything else in the list as another client wrote it.
func TestAChangeInAListKeepsWhatTheGoTypeDoesNotKnow(t *testing.T) {
	decks(t, func(kind *einmal.Kind[fixture.Deck]) { kind.OnCreate("pin", fixture.PinImages) }, func(w *einmaltest.World) {
		w.Apply(fixture.NewerDeck)
		var want map[string]any
		if found := newDeck(); w.Get(found) {
			want = found.Object["spec"].(map[string]any) //nolint:forcetypeassert // It is one.
		}
		w.Advance(time.Minute)
		fixture.PinnedImage(want)
		text, err := json.Marshal(want)
		if err != nil {
			w.Fatal(err)
		}
		holds(w, string(text), "spec")
		holds(w, "9007199254740993", "status", "count")
		wrote := []string{"patch decks.field.example.com default/one", "patch decks.field.example.com default/one status"}
		if diff := cmp.Diff(wrote, w.Writes()); diff != "" {
			w.Error(diff)
		}
	})
}
