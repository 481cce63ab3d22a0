package virtual_test

import (
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
	"github.com/einmal-operators/einmal/test/fixture"
)

// run handles a tenant with the first release, lets then act, and ends with the second release, which must know what the
// first one did.
func run(t *testing.T, m fixture.CarrierMove, then func(t *testing.T, w *virtualWorld), faults ...simulation.Fault) {
	t.Helper()
	j, carrier, log := &fixture.Journal{}, m.From, fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { fixture.DeclareRelease(op, carrier, j) }, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewTenantWithLimit("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		w.restart(func() { carrier = m.To })
		then(t, w)
		w.restart(func() {})
		w.Pass(time.Hour)
		w.merge(t, one, `{"spec":{"limit":2}}`)
		w.Pass(time.Hour)
		if diff := cmp.Diff([]string{"make", "resize [{change [spec limit] 1 2}]"}, j.Of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		for _, place := range []record.Carrier{m.From, m.To} {
			text, _, _ := unstructured.NestedString(one.Object, place.Path(fixture.Identity)...)
			if kept := text != ""; kept != (place == m.To) {
				t.Errorf("the record is in the %s: %t", place, kept)
			}
		}
	}, faults...)
}

// A record moves to another carrier in two requests, the new carrier first: a crash before either of them loses nothing.
func TestARecordMovesBetweenCarriersDespiteACrash(t *testing.T) {
	const object = "patch tenants." + fixture.Group + " default/one"
	for _, move := range fixture.CarrierMoves() {
		points := map[string]simulation.Point{"nothing": {}, "before the record is written": {What: object + " status", N: 1}, "before the old one is removed": {What: object, N: 2}}
		if move.From == record.Status {
			points = map[string]simulation.Point{"nothing": {}, "before the record is written": {What: object, N: 1}, "before the old one is removed": {What: object + " status", N: 2}}
		}
		for when, point := range points {
			t.Run(move.Name+", crash "+when, func(t *testing.T) {
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
	for _, move := range fixture.CarrierMoves() {
		t.Run(move.Name, func(t *testing.T) {
			run(t, move, func(t *testing.T, w *virtualWorld) {
				t.Helper()
				refused := 0
				allow := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					status := strings.HasSuffix(r.URL.Path, "/status")
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/tenants/") && status == (move.To == record.Status) {
						refused++
						refuse(answer, http.StatusForbidden, "Forbidden")
						return
					}
					next.ServeHTTP(answer, r)
				})
				w.Pass(time.Minute)
				one := fixture.NewTenantWithLimit("one")
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if text, _, _ := unstructured.NestedString(one.Object, move.From.Path(fixture.Identity)...); text == "" || refused == 0 {
					t.Errorf("after %d refusals the %s holds %q", refused, move.From, text)
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
	for _, move := range fixture.CarrierMoves() {
		t.Run(move.Name, func(t *testing.T) {
			j, carrier, log := &fixture.Journal{}, move.From, fixture.NewLog(t)
			virtually(t, log, func(op *einmal.Operator) { fixture.DeclareRelease(op, carrier, j) }, func(t *testing.T, w *virtualWorld) {
				one := fixture.NewTenantWithLimit("one")
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				allow := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					status := strings.HasSuffix(r.URL.Path, "/status")
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/tenants/") && status == (move.From == record.Status) {
						refuse(answer, http.StatusInternalServerError, "InternalError")
						return
					}
					next.ServeHTTP(answer, r)
				})
				w.restart(func() { carrier = move.To })
				w.Pass(5 * time.Second)
				allow()
				w.Pass(time.Minute)
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if text, _, _ := unstructured.NestedString(one.Object, move.From.Path(fixture.Identity)...); text != "" {
					t.Errorf("the record is in both carriers: the %s holds %q", move.From, text)
				}
				if diff := cmp.Diff([]string{"make"}, j.Of("one")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}
