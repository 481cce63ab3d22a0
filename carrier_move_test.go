package einmal_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// The same kind in two releases of an operator: the schema has a field for records in the status, and only one of the Go
// types has it.
type (
	tenantSpec struct {
		Limit int `json:"limit,omitempty"`
	}
	tenantStatus struct {
		Phase string `json:"phase,omitempty"`
	}
	tenantStatusWithRecords struct {
		einmal.Records `json:",inline"`

		Phase string `json:"phase,omitempty"`
	}
)

// tenantOf is a tenant as a user writes it.
func tenantOf(name string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"limit": int64(1)}}}
	one.SetAPIVersion(testGroup + "/v1")
	one.SetKind("Tenant")
	one.SetNamespace("default")
	one.SetName(name)
	return one
}

// declareTenantRelease declares the handlers of a release, which keeps records in the carrier.
func declareTenantRelease(op *einmal.Operator, carrier record.Carrier, j *journal) {
	gvk := einmal.GVK(testGroup, "v1", "Tenant")
	if carrier == record.Status {
		tenantHandlers(einmal.For[einmal.Resource[tenantSpec, tenantStatusWithRecords]](op, gvk), j)
	} else {
		tenantHandlers(einmal.For[einmal.Resource[tenantSpec, tenantStatus]](op, gvk), j)
	}
}

func tenantHandlers[T any](tenants *einmal.Kind[T], j *journal) {
	tenants.OnCreate("make", func(context.Context, *einmal.Change[T]) error {
		j.add("one", "make")
		return nil
	})
	tenants.OnUpdate("resize", func(_ context.Context, c *einmal.Change[T]) error {
		j.add("one", fmt.Sprintf("resize %v", c.Diff))
		return nil
	}, einmal.Fields("spec.limit"))
}

// carrierMove is a release that keeps records elsewhere than the one before.
type carrierMove struct {
	name     string
	from, to record.Carrier
}

func carrierMoves() []carrierMove {
	return []carrierMove{
		{"annotation to status", record.Annotation, record.Status},
		{"status to annotation", record.Status, record.Annotation},
	}
}

// run handles a tenant with the first release, lets then act, and ends with the second release, which must know what the
// first one did.
func run(t *testing.T, m carrierMove, then func(t *testing.T, w *virtualWorld), faults ...simulation.Fault) {
	t.Helper()
	j, carrier, log := &journal{}, m.from, testLog(t)
	virtually(t, log, func(op *einmal.Operator) { declareTenantRelease(op, carrier, j) }, func(t *testing.T, w *virtualWorld) {
		one := tenantOf("one")
		must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		w.restart(func() { carrier = m.to })
		then(t, w)
		w.restart(func() {})
		w.Pass(time.Hour)
		w.merge(t, one, `{"spec":{"limit":2}}`)
		w.Pass(time.Hour)
		if diff := cmp.Diff([]string{"make", "resize [{change [spec limit] 1 2}]"}, j.of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		for _, place := range []record.Carrier{m.from, m.to} {
			text, _, _ := unstructured.NestedString(one.Object, place.Path(testIdentity)...)
			if kept := text != ""; kept != (place == m.to) {
				t.Errorf("the record is in the %s: %t", place, kept)
			}
		}
	}, faults...)
}

// A record moves to another carrier in two requests, the new carrier first: a crash before either of them loses nothing.
func TestARecordMovesBetweenCarriersDespiteACrash(t *testing.T) {
	const object = "patch tenants." + testGroup + " default/one"
	for _, move := range carrierMoves() {
		points := map[string]simulation.Point{"nothing": {}, "before the record is written": {What: object + " status", N: 1}, "before the old one is removed": {What: object, N: 2}}
		if move.from == record.Status {
			points = map[string]simulation.Point{"nothing": {}, "before the record is written": {What: object, N: 1}, "before the old one is removed": {What: object + " status", N: 2}}
		}
		for when, point := range points {
			t.Run(move.name+", crash "+when, func(t *testing.T) {
				var faults []simulation.Fault
				if point.N > 0 {
					faults = append(faults, simulation.Fault{Kind: simulation.CrashBefore, At: point})
				}
				run(t, move, func(_ *testing.T, w *virtualWorld) { w.Pass(time.Minute) }, faults...)
			})
		}
	}
}

// A role without the right to write the new carrier takes nothing away from the old one.
func TestAForbiddenCarrierDoesNotRemoveTheOther(t *testing.T) {
	for _, move := range carrierMoves() {
		t.Run(move.name, func(t *testing.T) {
			run(t, move, func(t *testing.T, w *virtualWorld) {
				t.Helper()
				refused := 0
				allow := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					status := strings.HasSuffix(r.URL.Path, "/status")
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/tenants/") && status == (move.to == record.Status) {
						refused++
						refuse(answer, http.StatusForbidden, "Forbidden")
						return
					}
					next.ServeHTTP(answer, r)
				})
				w.Pass(time.Minute)
				one := tenantOf("one")
				must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if text, _, _ := unstructured.NestedString(one.Object, move.from.Path(testIdentity)...); text == "" || refused == 0 {
					t.Errorf("after %d refusals the %s holds %q", refused, move.from, text)
				}
				w.Stop() // What this process remembers is not to count.
				allow()
				w.start()
			})
		})
	}
}

// A record that cannot be removed from the former carrier is removed later, although nothing else is written.
func TestARecordThatCannotBeRemovedIsRemovedLater(t *testing.T) {
	for _, move := range carrierMoves() {
		t.Run(move.name, func(t *testing.T) {
			j, carrier, log := &journal{}, move.from, testLog(t)
			virtually(t, log, func(op *einmal.Operator) { declareTenantRelease(op, carrier, j) }, func(t *testing.T, w *virtualWorld) {
				one := tenantOf("one")
				must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				allow := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					status := strings.HasSuffix(r.URL.Path, "/status")
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/tenants/") && status == (move.from == record.Status) {
						refuse(answer, http.StatusInternalServerError, "InternalError")
						return
					}
					next.ServeHTTP(answer, r)
				})
				w.restart(func() { carrier = move.to })
				w.Pass(5 * time.Second)
				allow()
				w.Pass(time.Minute)
				must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if text, _, _ := unstructured.NestedString(one.Object, move.from.Path(testIdentity)...); text != "" {
					t.Errorf("the record is in both carriers: the %s holds %q", move.from, text)
				}
				if diff := cmp.Diff([]string{"make"}, j.of("one")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}
