package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// Tenant is a kind with a status that several write. The schema has no room for lastError.
type Tenant = einmal.Resource[TenantSpec, TenantStatus]

type TenantSpec struct {
	Plan  string `json:"plan,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

type TenantStatus struct {
	einmal.Records `json:",inline"`

	Phase      string             `json:"phase,omitempty"`
	Plan       string             `json:"plan,omitempty"`
	DBReady    bool               `json:"dbReady,omitempty"`
	RedisReady bool               `json:"redisReady,omitempty"`
	LastError  string             `json:"lastError,omitempty"`
	Endpoints  []Endpoint         `json:"endpoints,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type Endpoint struct {
	Name string `json:"name"`
	Port int    `json:"port"`
	Host string `json:"host,omitempty"`
}

func forTenants(op *einmal.Operator) *einmal.Kind[Tenant] {
	return einmal.For[Tenant](op, einmal.GVK(testGroup, "v1", "Tenant"))
}

func tenant(name, plan string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"plan": plan}}}
	made.SetAPIVersion(testGroup + "/v1")
	made.SetKind("Tenant")
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

// others are writers that have nothing to do with the operator.
type others struct{ client.Client }

// patchStatus writes the status of a tenant.
func (o others) patchStatus(ctx context.Context, name, merge string) error {
	return o.Status().Patch(ctx, tenant(name, ""), client.RawPatch(types.MergePatchType, []byte(merge)))
}

// applyStatus applies the status of a tenant by server-side apply, under the operator's own name.
func (o others) applyStatus(ctx context.Context, name string, status map[string]any) error {
	return o.applyStatusAs(ctx, name, testIdentity, status)
}

func (o others) applyStatusAs(ctx context.Context, name, owner string, status map[string]any) error {
	applied := tenant(name, "")
	unstructured.RemoveNestedField(applied.Object, "spec")
	applied.Object["status"] = status
	return o.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(owner), client.ForceOwnership)
}

// status reads what a tenant's status holds, without records and times, conditions as words.
func (o others) status(ctx context.Context, name string) (map[string]any, error) {
	found := tenant(name, "")
	if err := o.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return nil, err
	}
	status, has, _ := unstructured.NestedMap(found.Object, "status")
	if !has {
		return map[string]any{}, nil
	}
	delete(status, "records")
	var words []string
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, one := range conditions {
		if condition, is := one.(map[string]any); is {
			words = append(words, fmt.Sprintf("%v=%v/%v", condition["type"], condition["status"], condition["observedGeneration"]))
		}
	}
	slices.Sort(words)
	status["conditions"] = strings.Join(words, " ")
	return status, nil
}

// two declares two handlers: one provisions when a tenant is created; the other follows its plan, and runs at the creation too. Another client
// writes the status in the meantime. For the plan "wrong" the second handler makes a mistake: it writes a whole status, built from what it knows
// alone.
func two(op *einmal.Operator, other func() others) {
	tenants := forTenants(op)
	tenants.OnCreate("provision", func(ctx context.Context, c *einmal.Change[Tenant]) error {
		c.Object.Status.DBReady, c.Object.Status.RedisReady = true, true
		c.Object.Status.Phase = "Ready"
		err := other().patchStatus(ctx, c.Object.Name, `{"status":{"note":"theirs","conditions":[
			{"type":"Backup","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		return errors.Join(err, setCondition(c, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Provisioned"}))
	}, einmal.OwnsStatus("dbReady", "redisReady", "conditions[Ready]"))
	tenants.OnUpdate("follow", func(_ context.Context, c *einmal.Change[Tenant]) error {
		if c.Object.Spec.Plan == "wrong" {
			c.Object.Status = TenantStatus{Plan: c.Object.Spec.Plan}
			return nil
		}
		c.Object.Status.Plan = c.Object.Spec.Plan
		c.Object.Status.LastError = "none"
		return nil
	}, einmal.Fields("spec.plan"), einmal.AlsoAtCreation(), einmal.OwnsStatus("plan", "lastError"))
}

// survives checks that redisReady stays, whichever client writes which field. Wait lets the operator act until the tenant is as wanted, and
// mistake until a handler has made a mistake.
func survives(ctx context.Context, t *testing.T, other others, wait func(plan string), mistake func()) {
	t.Helper()
	if err := other.Create(ctx, tenant("acme", "standard")); err != nil {
		t.Fatal(err)
	}
	wait("standard")
	check := func(plan string) {
		t.Helper()
		want := map[string]any{
			"phase": "Ready", "plan": plan, "dbReady": true, "redisReady": true, "note": "theirs",
			"conditions": "Backup=True/<nil> Ready=True/1",
		}
		found, err := other.status(ctx, "acme")
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("plan %s: %v\n%s", plan, err, diff)
		}
	}
	check("standard")
	edit := func(plan string) {
		t.Helper()
		must(t, other.Patch(ctx, tenant("acme", ""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"plan":"`+plan+`"}}`))))
	}
	edit("wrong")
	mistake()
	check("standard")
	edit("large")
	wait("large")
	check("large")
	endpoint := map[string]any{"name": "sql", "port": int64(5432)}
	for _, status := range []map[string]any{{"endpoints": []any{endpoint}}, {}} {
		if err := other.applyStatus(ctx, "acme", status); err != nil {
			t.Fatal(err)
		}
	}
	check("large")
}

// Two handlers write one status, with all faults that make a field vanish: a field that the schema does not have, two writers that apply under
// one name, and a whole status from an old state.
func TestTwoHandlersAndOneStatus(t *testing.T) {
	log := testLog(t)
	var other others
	virtually(t, log, func(op *einmal.Operator) { two(op, func() others { return other }) },
		func(t *testing.T, w *virtualWorld) {
			other = others{w.User}
			act := func() { w.Pass(time.Minute) }
			survives(t.Context(), t, other, func(string) { act() }, act)
		})
	tellsOfTheStory(t, log)
}

func tellsOfTheStory(t *testing.T, log *syncedText) {
	t.Helper()
	tells(t, log, "msg~API server warning", `warning=unknown field "status.lastError"`, "handler=follow")
	tells(t, log, programmingError)
	tells(t, log, programmingError, "error~handler follow changed fields that other handlers own (einmal.OwnsStatus): "+
		"status.conditions.Ready (owner: provision), status.dbReady (owner: provision), status.redisReady (owner: provision);")
}

func (w *world) twoHandlersOneStatus(t *testing.T) {
	account := w.Account(t, "tenants",
		rbacv1.PolicyRule{
			APIGroups: []string{testGroup}, Resources: []string{"tenants", "tenants/status"}, Verbs: []string{"get", "list", "watch", "patch"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	log := testLog(t)
	op := einmal.New(testIdentity, einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	other := others{w.Client}
	two(op, func() others { return other })
	stop := w.run(t, op, account)
	survives(t.Context(), t, other, func(plan string) {
		cluster.Eventually(t, "the plan "+plan, func(ctx context.Context) error {
			found, err := other.status(ctx, "acme")
			if err == nil && found["plan"] != plan {
				err = fmt.Errorf("it is %v", found["plan"])
			}
			return err
		})
	}, func() {
		cluster.Until(t, "the mistake of a handler", func() bool { return log.lines(programmingError) > 0 })
	})
	stop()
	tellsOfTheStory(t, log)
}
