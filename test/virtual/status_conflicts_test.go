package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// ready is the condition of these tests.
func ready(status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: "Tested"}
}

// onTenants runs in virtual time with handlers for tenants, and another client that writes.
func onTenants(t *testing.T, declare func(*einmal.Kind[fixture.Tenant]), use func(*testing.T, *virtualWorld, fixture.Others)) *fixture.Log {
	t.Helper()
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { declare(fixture.Tenants(op)) },
		func(t *testing.T, w *virtualWorld) { use(t, w, fixture.Others{Client: w.User}) })
	return log
}

// intrude lets another client write before each write of the operator to the status of the tenant acme, n times at most. It returns how often
// that was.
func intrude(w *virtualWorld, n int, write func(i int) error) (times func() int) {
	done, inside := 0, false
	w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/acme/status") && !inside && done < n {
			inside = true
			done++
			if err := write(done); err != nil {
				http.Error(answer, err.Error(), http.StatusInternalServerError)
			}
			inside = false
		}
		next.ServeHTTP(answer, r)
	})
	return func() int { return done }
}

func backup(i int) string {
	return fmt.Sprintf(`{"status":{"conditions":[{"type":"Backup%d","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, i)
}

// Scenario 58: a condition and a field that another client sets in the meantime stay, and the handler is not called again for them.
func TestConcurrentConditionsOfOthersAreKept(t *testing.T) {
	calls := 0
	onTenants(t, func(tenants *einmal.Kind[fixture.Tenant]) {
		tenants.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Tenant]) error {
			calls++
			return fixture.SetCondition(c, ready(metav1.ConditionTrue))
		})
	}, func(t *testing.T, w *virtualWorld, other fixture.Others) {
		times := intrude(w, 2, func(i int) error {
			// The first one conflicts with the write of the operator, which is tried again. The second one does not.
			return other.PatchStatus(t.Context(), "acme", []string{backup(1), `{"status":{"note":"theirs"}}`}[i-1])
		})
		if err := other.Create(t.Context(), fixture.NewTenant("acme", "")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		found, err := other.StatusOf(t.Context(), "acme")
		if err != nil || found["conditions"] != "Backup1=True/<nil> Ready=True/1" || found["note"] != "theirs" || calls != 1 || times() != 2 {
			t.Errorf("%v, %v; %d calls, %d intrusions", found, err, calls, times())
		}
	})
}

// Scenario 59: if another client is always faster, Einmal tries a bounded number of times, logs the failure, and retries later.
func TestEndlessConflictsAreLogged(t *testing.T) {
	const tooOften = 12
	calls := 0
	log := onTenants(t, func(tenants *einmal.Kind[fixture.Tenant]) {
		tenants.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Tenant]) error {
			calls++
			return fixture.SetCondition(c, ready(metav1.ConditionTrue))
		})
	}, func(t *testing.T, w *virtualWorld, other fixture.Others) {
		times := intrude(w, tooOften, func(i int) error { return other.PatchStatus(t.Context(), "acme", backup(i)) })
		if err := other.Create(t.Context(), fixture.NewTenant("acme", "")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		found, err := other.StatusOf(t.Context(), "acme")
		if want := fmt.Sprintf("Backup%d=True/<nil> Ready=True/1", tooOften); err != nil || found["conditions"] != want || calls != 1 || times() != tooOften {
			t.Errorf("%v, %v; %d calls, %d intrusions", found, err, calls, times())
		}
	})
	if n := log.Count("error~write default/acme: conflicts in all attempts"); n != tooOften/5 {
		t.Errorf("told %d times, want %d", n, tooOften/5)
	}
}

// If two handlers set a field differently in one reconciliation, the later value is kept, and a warning names both: once, not for each object.
func TestTwoHandlersThatDisagreeAreNamedOnce(t *testing.T) {
	log := onTenants(t, func(tenants *einmal.Kind[fixture.Tenant]) {
		set := func(phase string) einmal.HandlerFunc[fixture.Tenant] {
			return func(_ context.Context, c *einmal.Change[fixture.Tenant]) error {
				c.Object.Status.Phase, c.Object.Status.Plan = phase, "same"
				return fixture.SetCondition(c, metav1.Condition{Type: phase, Status: metav1.ConditionTrue, Reason: "Tested"})
			}
		}
		tenants.OnCreate("first", set("one"))
		tenants.OnCreate("second", set("two"))
	}, func(t *testing.T, w *virtualWorld, other fixture.Others) {
		for _, name := range []string{"acme", "other"} {
			if err := other.Create(t.Context(), fixture.NewTenant(name, "")); err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
			found, err := other.StatusOf(t.Context(), name)
			want := map[string]any{"phase": "two", "plan": "same", "conditions": "one=True/1 two=True/1"}
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", name, err, diff)
			}
		}
		if told := events(t, w, "StatusConflict"); !cmp.Equal(told, []string{
			"conflicting status writes by handlers; kept the value from second: status.phase (earlier value from first). " +
				"Let one handler write each field and declare it with OwnsStatus",
		}) {
			t.Errorf("events: %q", told)
		}
	})
	if all := strings.Join(samples(t, fixture.Identity), "\n"); !strings.Contains(all, `status_conflicts_total{earlier="first",handler="second"} `) {
		t.Errorf("it is not counted:\n%s", all)
	}
	if n := log.Count("msg~conflicting status writes by two handlers"); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// events are the notes of the events with a reason.
func events(t *testing.T, w *virtualWorld, reason string) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("events.k8s.io/v1")
	list.SetKind("Event")
	if err := w.User.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, one := range list.Items {
		if one.Object["reason"] == reason {
			notes = append(notes, fmt.Sprint(one.Object["note"]))
		}
	}
	return notes
}

// Scenario 60: a field that the API server drops is logged once, not for each object, also in the items of lists.
func TestWhatTheServerDropsIsLoggedOnce(t *testing.T) {
	log := fixture.NewLog(t)
	gadget := func(name string) *unstructured.Unstructured {
		made := fixture.NewTenant(name, "")
		made.SetKind("Tenant")
		return made
	}
	virtually(t, log, func(op *einmal.Operator) {
		free := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Tenant"))
		free.OnCreate("typo", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			return errors.Join(
				unstructured.SetNestedField(c.Object.Object, "x", "status", "phrase"),
				unstructured.SetNestedSlice(c.Object.Object, []any{
					map[string]any{"name": "sql", "port": int64(1), "hots": "a"},
				}, "status", "endpoints"))
		})
	}, func(t *testing.T, w *virtualWorld) {
		for _, name := range []string{"acme", "other"} {
			if err := w.User.Create(t.Context(), gadget(name)); err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
		}
	})
	for _, field := range []string{"status.phrase", "status.endpoints[0].hots"} {
		if n := log.Count("msg~API server warning", "warning~unknown field", "warning~"+field, "handler=typo"); n != 1 {
			t.Errorf("%s is logged %d times, want once", field, n)
		}
	}
}
