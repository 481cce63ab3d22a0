package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// A password that another client has changed is set again, which an event tells. If it happens twice in ten minutes, the two contend for it, and a
// condition says so until it has been quiet for ten minutes.
func TestAContestedPasswordIsTold(t *testing.T) {
	t.Parallel()
	einmaltest.Run(t, func(w *einmaltest.World) {
		l := begin(w, sameStore)
		l.Apply(`{apiVersion: tenant.einmal.dev/v1, kind: Tenant, metadata: {name: acme},
			spec: {backendRef: {name: local}, apps: [{name: web}], credentials: {probeInterval: 10s}}}`)
		l.Advance(time.Minute)
		login := names.Tenant{Name: kept}.App("web").Logins()[0]
		for times, want := range []string{"True AsAsked", "True AsAsked", "False PasswordContested", "False PasswordContested"} {
			if times > 0 {
				l.outside.users[database].ChangePassword(login, credential.NewPassword("by-hand"))
				l.Advance(30 * time.Second)
			}
			l.contested(want, int32(times))
		}
		l.Advance(9 * time.Minute)
		l.contested("False PasswordContested", 3)
		l.Advance(2 * time.Minute)
		l.contested("True AsAsked", 0)
		var events corev1.EventList
		if err := w.Client().List(t.Context(), &events); err != nil {
			w.Fatal(err)
		}
		told := int32(0)
		for _, event := range events.Items {
			if event.Reason == "PasswordRestored" {
				told += max(event.Count, 1)
			}
		}
		if told != 3 {
			w.Errorf("%d events tell of restored passwords, want 3", told)
		}
	})
}

// contested expects the condition InSync, and how often the status says that the password was set again.
func (l *life) contested(want string, restorations int32) {
	l.Helper()
	tenant := tenantOf(kept)
	if !l.Get(tenant) {
		l.Fatalf("there is no tenant")
	}
	is := meta.FindStatusCondition(tenant.Status.Conditions, v1.ConditionInSync)
	if got := tenant.Status.Apps[0].Database.Restorations; string(is.Status)+" "+is.Reason != want || got != restorations {
		l.Errorf("InSync is %s %s (%s), set again %d times; want %s, %d times", is.Status, is.Reason, is.Message, got, want, restorations)
	}
}
