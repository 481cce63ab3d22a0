package main

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// secretsOf are the Secrets of the kept tenant's first credentials, as a backup has them.
func (l *life) secretsOf() []*corev1.Secret {
	l.Helper()
	var all []*corev1.Secret
	for record := range records(names.Tenant{Name: kept}.App("web")) {
		for _, name := range []string{record, record + ".g1"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials, Name: name}}
			if !l.Get(secret) {
				l.Fatalf("there is no Secret %s", name)
			}
			all = append(all, secret)
		}
	}
	return all
}

// empty empties the store, and has the tenant looked at, with the policy Rotate.
func (l *life) empty(all []*corev1.Secret) {
	l.Helper()
	for _, secret := range all {
		l.Delete(secret.DeepCopy())
	}
	l.ask(kept, "", "plan: premium, missingCredentialPolicy: Rotate")
}

// A store is empty for some seconds, as during a restore. The policy Rotate does not replace what is missing then, also if the operator restarts
// meanwhile. It replaces what stays missing for a minute.
func TestRotateWaitsUntilACredentialStaysMissing(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	t.Run("missing for a moment", func(t *testing.T) {
		einmaltest.Run(t, func(w *einmaltest.World) {
			l := begun(w)
			all := l.secretsOf()
			l.empty(all)
			for range 3 {
				l.Advance(4 * time.Second)
				l.Restart()
			}
			for _, secret := range all {
				secret.ResourceVersion, secret.UID = "", ""
				l.Create(secret)
			}
			l.Advance(pause)
			l.has(kept, 1)
		})
	})
	t.Run("missing for good", func(t *testing.T) {
		einmaltest.Run(t, func(w *einmaltest.World) {
			l := begun(w)
			l.empty(l.secretsOf())
			for range 5 {
				l.Advance(12 * time.Second)
				l.Restart()
			}
			l.Advance(30 * time.Second)
			for record, in := range records(names.Tenant{Name: kept}.App("web")) {
				now := l.stored(record)
				if now == nil || maps.Equal(now, l.seen[record+".g1"]) || !l.outside.users[in].Accepts(loginOf(now)) {
					l.Errorf("%s is not replaced after 90 s", record)
				}
			}
			for _, broken := range l.outside.complaints() {
				l.Errorf("%s", broken)
			}
		})
	})
}
