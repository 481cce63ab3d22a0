package virtual_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The functions of Watches, Index and OnEvent never see an object that cannot be decoded. Its last good version stands for it.
func TestRelatedObjectsThatCannotBeDecoded(t *testing.T) {
	var sizes *einmal.Lookup[string, int32]
	withShops(t, func(s *shops) {
		s.Create(rawShop("one", map[string]any{"replicas": int64(1)}), rawShop("bad", map[string]any{"replicas": "three"}))
		s.Create(fixture.NewWidget("widget"))
		s.Advance(time.Minute)
		s.Said()
		expectSize := func(name string, want ...int32) {
			s.Helper()
			if got := sizes.Get(name); !slices.Equal(got, want) {
				s.Errorf("the index has %v of %s, want %v", got, name, want)
			}
		}
		expectSize("one", 1)
		expectSize("bad")
		s.Patch(rawShop("one", nil), `{"spec":{"replicas":"two"}}`)
		s.Advance(time.Minute)
		s.Expect(s)
		expectSize("one", 1)
		expectSaid := func(want ...string) {
			s.Helper()
			got := s.Said()
			slices.Sort(got)
			got = slices.Compact(got) // The operator's own writes are events, too.
			if !slices.Equal(got, want) {
				s.Errorf("%q, want %q", got, want)
			}
		}
		s.Patch(rawShop("one", nil), `{"spec":{"replicas":2}}`)
		s.Advance(time.Minute)
		expectSize("one", 2)
		expectSaid("event modified one", "refit one with 2", "widget lists 1")
		s.Patch(rawShop("bad", nil), `{"spec":{"replicas":3}}`)
		s.Advance(time.Minute)
		expectSize("bad", 3)
		expectSaid("event modified bad", "open bad with 3", "widget lists 2")
	}, func(op *einmal.Operator, kind *einmal.Kind[fixture.Shop], s *shops) {
		complete := func(one *fixture.Shop) *fixture.Shop {
			if one.Spec.Replicas == 0 {
				s.Errorf("a function was called with %s, which cannot be decoded", one.Name)
			}
			return one
		}
		gvk := einmal.GVK("field.example.com", "v1", "Shop")
		sizes = einmal.Index(op, "sizes", func(one *fixture.Shop) (map[string]int32, error) {
			return map[string]int32{one.Name: complete(one).Spec.Replicas}, nil
		}, gvk)
		kind.OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
			s.Add("event %s %s", c.Reason, complete(c.Object).Name)
			return nil
		})
		einmal.For[fixture.Widget](op).Reconcile("sync", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			var all einmal.ResourceList[fixture.ShopSpec, fixture.ShopStatus]
			if err := c.Client.List(ctx, &all); err != nil {
				return err
			}
			s.Add("%s lists %d", c.Object.Name, len(all.Items))
			return nil
		}, einmal.Watches(func(one *fixture.Shop) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: "default", Name: complete(one).Name}, {Namespace: "default", Name: "widget"}}
		}, gvk))
	})
}

// Kinds that are only watched, in full or as metadata, and in a cache of some namespaces, are reported and skipped in the same way.
func TestAWatchedKindWithAnObjectThatCannotBeDecoded(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		s := &shops{World: w}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.ShopsOperator, einmal.Scheme(fixture.AddKinds), einmal.CRDs([]byte(fixture.DefineFreeKind("Shop"))), einmal.CRDs(fixture.CRDs()),
				einmal.StateNamespace("default"), einmal.Namespaces("def*"))
			einmal.For[fixture.Widget](op).Reconcile("sync", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				s.Add("%s", c.Object.Name)
				return nil
			}, einmal.Watches(func(one *fixture.Shop) []types.NamespacedName {
				if one.Spec.Replicas == 0 {
					s.Errorf("the function was called with %s, which cannot be decoded", one.Name)
				}
				return []types.NamespacedName{{Name: "widget"}}
			}, einmal.GVK("field.example.com", "v1", "Shop")))
			return op
		})
		s.Create(fixture.NewWidget("widget"))
		s.Advance(time.Minute)
		s.Create(rawShop("bad", map[string]any{"replicas": "three"}), rawShop("good", map[string]any{"replicas": int64(1)}))
		s.Advance(time.Minute)
		s.Expect(s, "widget", "widget")
		s.expectUndecodable(1)
		if message := s.reported()["bad"]; !strings.Contains(message, "spec.replicas") {
			s.Errorf("the event is %q", message)
		}
		s.Delete(rawShop("bad", nil))
		s.Advance(time.Minute)
		s.Expect(s)
		s.expectUndecodable(0)
	})
}
