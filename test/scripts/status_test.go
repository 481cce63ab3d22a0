package scripts_test

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
	"github.com/einmal-operators/einmal/test/fixture"
)

// statusSubjects are the operators of scripts about what handlers write into their object.
func statusSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"tenants":           subjectOf(declareTenants, provisioned),
		"repainted-gadgets": subjectOf(fixture.Gadgets, repainted),
		"growing-widgets":   subjectOf(fixture.Widgets, growing),
	}
}

func declareTenants(op *einmal.Operator) (*einmal.Kind[fixture.Tenant], fixture.Accessors[fixture.Tenant]) {
	return fixture.Tenants(op), fixture.Accessors[fixture.Tenant]{
		Name:     func(o *fixture.Tenant) string { return o.Name },
		Size:     func(o *fixture.Tenant) int64 { return int64(o.Spec.Limit) },
		SetPhase: func(o *fixture.Tenant, phase string) { o.Status.Phase = phase },
	}
}

// provisioned has two handlers that own parts of the status each, and a condition each.
func provisioned(tenants *einmal.Kind[fixture.Tenant], of fixture.Accessors[fixture.Tenant], s stage) {
	tenants.OnCreate("provision", func(_ context.Context, c *einmal.Change[fixture.Tenant]) error {
		if err := s.registry.Set(s.Process, c.Object.Name, true); err != nil {
			return err
		}
		c.Object.Status.DBReady, c.Object.Status.RedisReady = true, true
		sql := fixture.Endpoint{Name: "sql", Port: 5432, Host: c.Object.Name}
		if !slices.Contains(c.Object.Status.Endpoints, sql) {
			c.Object.Status.Endpoints = append(c.Object.Status.Endpoints, sql)
		}
		return fixture.SetCondition(c, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Provisioned"})
	}, einmal.OwnsStatus("dbReady", "redisReady", "endpoints[sql/5432]", "conditions[Ready]"))
	tenants.OnUpdate("follow", func(_ context.Context, c *einmal.Change[fixture.Tenant]) error {
		if err := s.troubles.Next("follow"); err != nil {
			return err
		}
		c.Object.Status.Plan = c.Object.Spec.Plan
		of.SetPhase(c.Object, fmt.Sprintf("limit %d", of.Size(c.Object)))
		status := metav1.ConditionTrue
		if c.Object.Spec.Limit == 0 {
			status = metav1.ConditionFalse
		}
		return fixture.SetCondition(c, metav1.Condition{Type: "Limited", Status: status, Reason: "AsPlanned", Message: c.Object.Spec.Plan})
	}, einmal.Fields("spec"), einmal.AlsoAtCreation(), einmal.OwnsStatus("plan", "conditions[Limited]"))
}

// repainted sets a field of the spec and a label, and takes another field and an annotation away.
func repainted(gadgets *einmal.Kind[unstructured.Unstructured], _ fixture.Accessors[unstructured.Unstructured], _ stage) {
	gadgets.OnUpdate("repaint", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		unstructured.RemoveNestedField(c.Object.Object, "spec", "tags")
		unstructured.RemoveNestedField(c.Object.Object, "metadata", "annotations", "paint")
		c.Object.SetLabels(map[string]string{"painted": "yes"})
		return unstructured.SetNestedField(c.Object.Object, "red", "spec", "color")
	}, einmal.Fields("spec.size"))
}

// growing has a handler that looks at all of the object, and changes its spec and labels; another looks at the labels.
func growing(widgets *einmal.Kind[fixture.Widget], of fixture.Accessors[fixture.Widget], _ stage) {
	widgets.OnUpdate("grow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Spec.Size++
		c.Object.Labels = map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}
		return nil
	})
	widgets.OnUpdate("label", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		of.SetPhase(c.Object, "labelled "+c.Object.Labels["size"])
		return nil
	}, einmal.Fields("metadata.labels"))
}

// With any fault, each handler's part of the status is there in the end, and so is what others wrote. Wiped records are left out: a creation
// that cannot be known to be done is repeated, and its condition is about a later generation.
func TestWhateverGoesWrongTheStatusIsWhole(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		outside, ahead := &fixture.Registry{}, &fixture.Troubles{}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			tenants, of := declareTenants(op)
			provisioned(tenants, of, stage{Process: p, registry: outside, troubles: ahead})
			return op
		})
		acme := fixture.NewTenant("acme", "small")
		w.Create(acme)
		other := fixture.Others{Client: w.Client()}
		theirs := func(status string) {
			if err := other.ApplyStatusAs(w.Context(), "acme", "backup", map[string]any{"note": "theirs", "conditions": []any{map[string]any{
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
		found, err := other.StatusOf(w.Context(), "acme")
		if err != nil {
			w.Fatal(err)
		}
		w.Outcome("status", found)
		w.Outcome("registered", outside.Registered())
	}, einmaltest.Without(einmaltest.Wipes))
}
