package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// The logins of an app keep what credential.User relies on, with sessions that stay and with sessions that end.
func TestLoginsAreASystem(t *testing.T) {
	t.Parallel()
	tenants := &atomic.Int64{}
	for name, terminate := range map[string]bool{"stay": false, "end": true} {
		t.Run("sessions "+name, func(t *testing.T) {
			t.Parallel()
			credentialtest.SystemContract(t, func(t *testing.T) credentialtest.SystemSubject {
				t.Helper()
				made := newApp(t, fmt.Sprintf("contract-%d", tenants.Add(1)))
				made.converge(t)
				made.logins.Terminate = terminate
				return made.subject()
			})
		})
	}
}

// subject is the app's logins as a system under test.
func (a app) subject() credentialtest.SystemSubject {
	return credentialtest.SystemSubject{
		System: a.logins, Owner: a.mark, Username: a.names.Login(1), Alternate: a.names.Login(2),
		Accepts: func(t *testing.T, record credential.Record) bool {
			t.Helper()
			session, err := pgx.Connect(t.Context(), shared.DSNOf(record.Username, record.Password.Reveal(), a.tenant.Database))
			if err == nil {
				_ = session.Close(context.WithoutCancel(t.Context()))
			}
			return err == nil
		},
		HoldLogins: func(t *testing.T, record credential.Record) {
			t.Helper()
			name := "long-salt"
			if since18(t) {
				name = "many-iterations"
			}
			obstacles()[name](t, a, record, connect(t, a.tenant.Database, record))
		},
	}
}
