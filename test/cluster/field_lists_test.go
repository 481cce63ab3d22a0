package cluster_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// serveDecks runs an operator of decks.
func (w *world) serveDecks(t *testing.T, declare func(*einmal.Kind[fixture.Deck])) {
	t.Helper()
	op := einmal.New(fixture.DecksOperator, einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	declare(einmal.For[fixture.Deck](op, einmal.GVK("field.example.com", "v1", "Deck")))
	fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: "0", MetricsAddress: "0"})
}

// deckField reads a part of the deck as JSON.
func (w *world) deckField(t *testing.T, path string) string {
	t.Helper()
	return w.Kubectl(t, "", "get", "deck", "one", "-o", "jsonpath={"+path+"}")
}

// Two clients append to the same lists without keys, and both items stay. See https://github.com/kubernetes-sigs/controller-runtime/issues/969.
func TestFieldTwoWritersOfOnePlainList(t *testing.T) {
	w := newFieldWorld(t, "Deck", "decks")
	said, begun, proceed := &fixture.Notes{}, make(chan struct{}, 9), make(chan struct{})
	w.serveDecks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.OnCreate("add", func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
			said.Add("add")
			begun <- struct{}{}
			select {
			case <-proceed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			c.Object.Spec.Plugins = append(c.Object.Spec.Plugins, "ours")
			c.Object.Status.Seen = append(c.Object.Status.Seen, "ours")
			return nil
		})
	})
	w.Kubectl(t, strings.Replace(fixture.NewerDeck, "spec:", "spec:\n  plugins: [first]", 1), "apply", "-f", "-")
	<-begun
	w.Kubectl(t, "", "patch", "deck", "one", "--type=merge", "-p", `{"spec":{"plugins":["first","theirs"]}}`)
	w.Kubectl(t, "", "patch", "deck", "one", "--type=merge", "--subresource=status", "-p", `{"status":{"seen":["theirs"]}}`)
	close(proceed)
	cluster.Until(t, "both items are in both lists", func() bool {
		return w.deckField(t, ".spec.plugins")+w.deckField(t, ".status.seen") == `["first","theirs","ours"]["theirs","ours"]`
	})
	untilSaid(t, said, "add")
}

// A handler whose Go type is older than the definition changes one field of an item. Everything else stays as it was written, and numbers that
// only int64 holds are exact. See https://github.com/openshift/origin/issues/5505.
func TestFieldNewerFieldsInLists(t *testing.T) {
	w := newFieldWorld(t, "Deck", "decks")
	said := &fixture.Notes{}
	pin := func(ctx context.Context, c *einmal.Change[fixture.Deck]) error {
		said.Add("%s %d", c.Reason, c.Object.Spec.Limit)
		return fixture.PinImages(ctx, c)
	}
	w.Kubectl(t, fixture.NewerDeck, "apply", "-f", "-")
	spec := func() (found map[string]any) {
		exact := json.NewDecoder(strings.NewReader(w.deckField(t, ".spec")))
		exact.UseNumber()
		if err := exact.Decode(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := spec()
	fixture.PinnedImage(want)
	w.serveDecks(t, func(kind *einmal.Kind[fixture.Deck]) {
		kind.OnCreate("pin", pin)
		kind.OnUpdate("pin-again", pin, einmal.Fields("spec"))
	})
	cluster.Until(t, "the status is exact", func() bool { return w.deckField(t, ".status.count") == "9007199254740993" })
	if diff := cmp.Diff(want, spec()); diff != "" {
		t.Errorf("spec: %s", diff)
	}
	if words := w.deckField(t, ".status.words"); words != `{"":"empty","a.b":"dots","a/b~c":"1","null":"null","ключ.é":"\u2028\u003c\u003e\u0026"}` {
		t.Errorf("status.words: %s", words)
	}
	w.Kubectl(t, "", "patch", "deck", "one", "--type=merge", "-p", `{"spec":{"limit":9007199254740992}}`)
	untilSaid(t, said, "create 9007199254740993", "update 9007199254740992")
	want["limit"] = json.Number("9007199254740992")
	if diff := cmp.Diff(want, spec()); diff != "" {
		t.Errorf("spec after the update: %s", diff)
	}
}
