package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

type dealSpec struct {
	Price int32 `json:"price,omitempty"`
}

type dealStatus struct {
	einmal.Records `json:",inline"`

	Phase string `json:"phase,omitempty"`
}

type deal = einmal.Resource[dealSpec, dealStatus]

// dealDefinition defines the kind with a schema for conditions.
func dealDefinition(conditions string) []byte {
	return []byte(fixture.DefineKind("Deal", `{type: object, properties: {price: {type: integer}}}`, `{type: object, properties: {
            phase: {type: string, maxLength: 10}, records: {type: object, additionalProperties: {type: string}}, conditions: `+conditions+`}}`))
}

// refusingConditions are schemas that refuse the conditions of Einmal.
func refusingConditions() map[string]string {
	item := func(properties, more string) string {
		return `{type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {` + properties + `}` + more + `}}`
	}
	return map[string]string{
		"types are enumerated":                item(`type: {type: string, enum: [Ready]}`, ""),
		"another field is required":           item(`severity: {type: string}`, `, required: [severity]`),
		"types have a pattern":                item(`type: {type: string, pattern: "^Ready$"}`, ""),
		"messages are short":                  item(`message: {type: string, maxLength: 5}`, ""),
		"reasons are enumerated":              item(`reason: {type: string, enum: [Good]}`, ""),
		"a map instead of a list":             `{type: object, additionalProperties: {type: string}}`,
		"a list of texts":                     `{type: array, items: {type: string}}`,
		"a text":                              `{type: string}`,
		"no item is allowed":                  `{type: array, maxItems: 0, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`,
		"the status of conditions is boolean": item(`status: {type: boolean}`, ""),
	}
}

// A condition of Einmal that the API server refuses blocks no object: answers and the release annotation work, handlers are not blamed, and
// few writes are refused.
func TestAConditionThatIsRefusedBlocksNothing(t *testing.T) {
	for name, schema := range refusingConditions() {
		t.Run(name, func(t *testing.T) {
			said := &fixture.Notes{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.AllowUnfinished("sell", "close")
				w.Start(func(*einmaltest.Process) *einmal.Operator { return newDeals(said, schema) })
				w.Advance(time.Second)
				w.Create(&deal{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
				w.Advance(10 * time.Minute)
				said.Expect(w, "sell", "prepare 0")
				one := &deal{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
				w.Patch(one, `{"spec":{"price":7}}`)
				w.Advance(10 * time.Minute)
				said.Expect(w, "refit 7")
				w.Get(one)
				if one.Status.Phase != "refit" {
					w.Errorf("the phase is %q", one.Status.Phase)
				}
				token := answerOf(w)
				w.Patch(one, `{"metadata":{"annotations":{"`+token+`":"done"}}}`)
				w.Advance(10 * time.Minute)
				said.Expect(w, "sold")
				w.Delete(one)
				w.Advance(10 * time.Minute)
				said.Expect(w, "close")
				w.Patch(one, `{"metadata":{"annotations":{"`+fixture.Identity+`/release":"close"}}}`)
				w.Advance(10 * time.Minute)
				if w.Get(one) {
					w.Error("the object is still there")
				}
				if n := len(w.Writes()); n > 12 {
					w.Errorf("%d writes", n)
				}
			})
		})
	}
}

// If the API server refuses the changes of a handler, the conditions of Einmal are set all the same.
func TestConditionsAreSetWithoutARefusedChange(t *testing.T) {
	const usual = `{type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("sell", "close")
		w.AllowDeleting()
		w.Start(func(*einmaltest.Process) *einmal.Operator { return newDeals(said, usual) })
		w.Advance(time.Second)
		one := &deal{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", Annotations: map[string]string{"phase": "much too long"}}}
		w.Create(one)
		w.Advance(10 * time.Minute)
		w.Delete(one)
		w.Advance(10 * time.Minute)
		raw := &unstructured.Unstructured{}
		raw.SetAPIVersion(fixture.ShopVersion)
		raw.SetKind("Deal")
		raw.SetNamespace("default")
		raw.SetName("one")
		w.Get(raw)
		conditions, _, _ := unstructured.NestedSlice(raw.Object, "status", "conditions")
		if text := fmt.Sprint(conditions); !strings.Contains(text, "type:DeletionBlocked") || !strings.Contains(text, "type:EffectUndecided") {
			w.Errorf("the conditions are %s", text)
		}
	})
}

// answerOf returns the annotation that answers the effect of which an event asks.
func answerOf(w *einmaltest.World) string {
	w.Helper()
	for _, line := range eventsOf(w) {
		if _, after, found := strings.Cut(line, "set the annotation "); found {
			annotation, _, _ := strings.Cut(after, " ")
			return annotation
		}
	}
	w.Fatalf("no event asks: %q", eventsOf(w))
	return ""
}

func newDeals(said *fixture.Notes, schema string) *einmal.Operator {
	op := einmal.New(fixture.Identity, einmal.StateNamespace("default"), einmal.CRDs(dealDefinition(schema)))
	deals := einmal.For[deal](op, einmal.GVK("field.example.com", "v1", "Deal"))
	deals.OnCreate("sell", func(ctx context.Context, c *einmal.Change[deal]) error {
		_, err := einmal.Effect(ctx, c, "sale", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
			said.Add("sell")
			return fixture.Account{}, errors.New("connection lost")
		}))
		if err == nil {
			said.Add("sold")
		}
		return err
	})
	deals.OnCreate("prepare", func(_ context.Context, c *einmal.Change[deal]) error {
		said.Add("prepare %d", c.Object.Spec.Price)
		c.Object.Status.Phase = "prepared"
		return nil
	})
	deals.OnUpdate("refit", func(_ context.Context, c *einmal.Change[deal]) error {
		said.Add("refit %d", c.Object.Spec.Price)
		c.Object.Status.Phase = "refit"
		return nil
	})
	deals.OnDelete("close", func(_ context.Context, c *einmal.Change[deal]) error {
		said.Add("close")
		c.Object.Status.Phase = c.Object.Annotations["phase"]
		return einmal.Permanent(errors.New("refused"))
	})
	return op
}
