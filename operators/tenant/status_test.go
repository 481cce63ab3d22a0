package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// The API server rejects a status with a condition message above 32768 bytes (metav1.Condition). So if many apps have errors, the message
// contains some of them and the number of the others.
func TestTheTroubleOfManyAppsHasRoomInTheStatus(t *testing.T) {
	t.Parallel()
	var found report
	for i := range 64 { // As many as a tenant has, and as many that were taken out and cannot be removed.
		for _, in := range []system{database, caching} {
			err := errors.New(strings.Repeat("it does not answer ", 30))
			found.findings = append(found.findings, finding{app: fmt.Sprint("app-", i), system: in, err: err, unwanted: i >= 32})
		}
	}
	conditions, _ := found.judge(&v1.Tenant{})
	for _, one := range conditions {
		if len(one.Message) > 8192 {
			t.Errorf("%s has %d bytes", one.Type, len(one.Message))
		}
		if one.Type == v1.ConditionReady && (!strings.HasPrefix(one.Message, "app app-0, database: it does not") || !strings.HasSuffix(one.Message, " more")) {
			t.Errorf("it says %q", one.Message)
		}
	}
}

// A rotation in place first says that the tenant is not ready, and changes no password before. In the end it is ready again, and what follows writes no
// status.
func TestATenantIsNotReadyBeforeARotationInPlaceRejectsAPassword(t *testing.T) {
	t.Parallel()
	einmaltest.Run(t, func(w *einmaltest.World) {
		l := begin(w, sameStore)
		manifest := `{apiVersion: tenant.einmal.dev/v1, kind: Tenant, metadata: {name: acme},
			spec: {backendRef: {name: local}, apps: [{name: web}], credentials: {rotation: {%s}}}}`
		l.Apply(fmt.Sprintf(manifest, ""))
		l.Advance(time.Minute)
		login := names.Tenant{Name: kept}.App("web").Logins()[0]
		l.ready(metav1.ConditionTrue, "Ready", 1)
		l.Apply(fmt.Sprintf(manifest, "requestId: leak, strategy: InPlace"))
		l.Advance(50 * time.Millisecond)
		l.ready(metav1.ConditionFalse, "RevokingCredentials", 1)
		if had := l.outside.users[database].Had(login); len(had) != 1 {
			l.Errorf("before the status says so, the login has had %d passwords", len(had))
		}
		l.Advance(time.Minute)
		l.ready(metav1.ConditionTrue, "Ready", 2)
		w.Restart()
		writes := len(w.Writes())
		l.Advance(time.Minute)
		if more := w.Writes()[writes:]; len(more) > 0 {
			l.Errorf("after a restart, it writes %v", more)
		}
	})
}

// ready expects the condition Ready, and the generation of the first app's login.
func (l *life) ready(want metav1.ConditionStatus, reason string, generation int32) {
	l.Helper()
	tenant := tenantOf(kept)
	if !l.Get(tenant) {
		l.Fatalf("there is no tenant")
	}
	is := meta.FindStatusCondition(tenant.Status.Conditions, v1.ConditionReady)
	if got := tenant.Status.Apps[0].Database.Generation; is.Status != want || is.Reason != reason || got != generation {
		l.Errorf("Ready is %s %s (%s), generation %d; want %s %s, generation %d", is.Status, is.Reason, is.Message, got, want, reason, generation)
	}
}

// A login that fails for another reason than its password makes the tenant not ready. Sessions that do not end leave its logins ready, and the tenant not
// in sync. The status names the credential that readers have in both cases.
func TestWhatTheStatusSaysOfLoginsAndSessions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want map[string]string
	}{
		"a login that fails": {fmt.Errorf("%w: too many connections", credential.ErrUnusable), map[string]string{
			v1.ConditionDatabaseReady: "False LoginFails", v1.ConditionInSync: "True AsAsked", v1.ConditionReady: "False LoginFails",
		}},
		"a session that stays": {fmt.Errorf("%w: 17", postgres.ErrSessions), map[string]string{
			v1.ConditionDatabaseReady: "True Accepted", v1.ConditionInSync: "False SessionsRemain", v1.ConditionReady: "False SessionsRemain",
		}},
	} {
		found := finding{app: "web", system: database, err: row.err}
		found.outcome.Generation = 2
		conditions, _ := report{findings: []finding{found}}.judge(&v1.Tenant{})
		for condition, want := range row.want {
			if is := meta.FindStatusCondition(conditions, condition); string(is.Status)+" "+is.Reason != want {
				t.Errorf("%s: %s is %s %s, want %s", name, condition, is.Status, is.Reason, want)
			}
		}
		if after := found.after(v1.Principal{Generation: 1}, "", time.Now()); after.Generation != 2 || after.Problem == "" {
			t.Errorf("%s: the status has %+v", name, after)
		}
	}
}
