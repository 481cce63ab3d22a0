package einmal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// statusSubjects are the operators of scripts about what handlers write into their object.
func statusSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"tenants":           subjectOf(declareTenants, provisioned),
		"repainted-gadgets": subjectOf(declareGadgets, repainted),
		"growing-widgets":   subjectOf(declareWidgets, growing),
	}
}

func declareTenants(op *einmal.Operator) (*einmal.Kind[Tenant], sized[Tenant]) {
	return forTenants(op), sized[Tenant]{
		name:     func(o *Tenant) string { return o.Name },
		size:     func(o *Tenant) int64 { return int64(o.Spec.Limit) },
		setPhase: func(o *Tenant, phase string) { o.Status.Phase = phase },
	}
}

// provisioned has two handlers that own parts of the status each, and a condition each.
func provisioned(tenants *einmal.Kind[Tenant], of sized[Tenant], s stage) {
	tenants.OnCreate("provision", func(_ context.Context, c *einmal.Change[Tenant]) error {
		if err := s.registry.set(s.Process, c.Object.Name, true); err != nil {
			return err
		}
		c.Object.Status.DBReady, c.Object.Status.RedisReady = true, true
		sql := Endpoint{Name: "sql", Port: 5432, Host: c.Object.Name}
		if !slices.Contains(c.Object.Status.Endpoints, sql) {
			c.Object.Status.Endpoints = append(c.Object.Status.Endpoints, sql)
		}
		return setCondition(c, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Provisioned"})
	}, einmal.OwnsStatus("dbReady", "redisReady", "endpoints[sql/5432]", "conditions[Ready]"))
	tenants.OnUpdate("follow", func(_ context.Context, c *einmal.Change[Tenant]) error {
		if err := s.troubles.next("follow"); err != nil {
			return err
		}
		c.Object.Status.Plan = c.Object.Spec.Plan
		of.setPhase(c.Object, fmt.Sprintf("limit %d", of.size(c.Object)))
		status := metav1.ConditionTrue
		if c.Object.Spec.Limit == 0 {
			status = metav1.ConditionFalse
		}
		return setCondition(c, metav1.Condition{Type: "Limited", Status: status, Reason: "AsPlanned", Message: c.Object.Spec.Plan})
	}, einmal.Fields("spec"), einmal.AlsoAtCreation(), einmal.OwnsStatus("plan", "conditions[Limited]"))
}

// repainted sets a field of the spec and a label, and takes another field and an annotation away.
func repainted(gadgets *einmal.Kind[unstructured.Unstructured], _ sized[unstructured.Unstructured], _ stage) {
	gadgets.OnUpdate("repaint", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		unstructured.RemoveNestedField(c.Object.Object, "spec", "tags")
		unstructured.RemoveNestedField(c.Object.Object, "metadata", "annotations", "paint")
		c.Object.SetLabels(map[string]string{"painted": "yes"})
		return unstructured.SetNestedField(c.Object.Object, "red", "spec", "color")
	}, einmal.Fields("spec.size"))
}

// growing has a handler that looks at all of the object, and changes its spec and labels; another looks at the labels.
func growing(widgets *einmal.Kind[Widget], of sized[Widget], _ stage) {
	widgets.OnUpdate("grow", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Object.Spec.Size++
		c.Object.Labels = map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}
		return nil
	})
	widgets.OnUpdate("label", func(_ context.Context, c *einmal.Change[Widget]) error {
		of.setPhase(c.Object, "labelled "+c.Object.Labels["size"])
		return nil
	}, einmal.Fields("metadata.labels"))
}

// With any fault, each handler's part of the status is there in the end, and so is what others wrote. Wiped records are left out: a creation
// that cannot be known to be done is repeated, and its condition is about a later generation.
func TestWhateverGoesWrongTheStatusIsWhole(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		outside, ahead := &registry{}, &troubles{}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := newTestOperator()
			tenants, of := declareTenants(op)
			provisioned(tenants, of, stage{Process: p, registry: outside, troubles: ahead})
			return op
		})
		acme := tenant("acme", "small")
		w.Create(acme)
		other := others{w.Client()}
		theirs := func(status string) {
			if err := other.applyStatusAs(w.Context(), "acme", "backup", map[string]any{"note": "theirs", "conditions": []any{map[string]any{
				"type": "Backup", "status": status, "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}}}); err != nil {
				w.Fatal(err)
			}
		}
		theirs("False")
		w.Advance(10 * time.Minute)
		w.Patch(acme, `{"spec":{"plan":"large","limit":5}}`)
		w.Advance(10 * time.Minute)
		theirs("True")
		w.Advance(10 * time.Minute)
		found, err := other.status(w.Context(), "acme")
		if err != nil {
			w.Fatal(err)
		}
		w.Outcome("status", found)
		w.Outcome("registered", outside.left())
	}, einmaltest.Without(einmaltest.Wipes))
}
