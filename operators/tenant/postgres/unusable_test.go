package postgres_test

import (
	"errors"
	"testing"

	"github.com/einmal-operators/einmal/credential"
)

// Whatever ends a session after the server has accepted the password, the login is accepted, and the error says that an app cannot use it.
func TestALoginThatEndsAfterThePasswordIsUnusable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"library-of-database", "library-of-login", "no-connections", "closed-to-all", "no-right", "own-limit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, record := madeApp(t, "unusable-"+name)
			if harm, is := selfHarm()[name]; is {
				app.harm(t, record, harm)
			} else {
				super(t, "postgres", `ALTER ROLE "`+record.Username+`" CONNECTION LIMIT 0`)
			}
			app.isUnusable(t, record)
		})
	}
}

// isUnusable expects that the login is accepted and cannot be used, until what prevents it is taken back.
func (a app) isUnusable(t *testing.T, record credential.Record) {
	t.Helper()
	user := a.user(&memory{records: []credential.Record{record}, published: 1})
	state, err := a.logins.Observe(t.Context(), a.mark, record.Username, record.Password)
	if state != credential.Accepted || !errors.Is(err, credential.ErrUnusable) {
		t.Errorf("the login is %q, %v", state, err)
	}
	outcome, err := user.Converge(t.Context())
	if !errors.Is(err, credential.ErrUnusable) || outcome.Record != record || !outcome.Verified {
		t.Errorf("Converge returns %+v, %v", outcome, err)
	}
	super(t, "postgres", `ALTER DATABASE "`+a.tenant.Database+`" RESET ALL`, `ALTER ROLE "`+record.Username+`" RESET local_preload_libraries`)
	a.converge(t)
	if _, err := a.logins.Converge(t.Context(), a.mark, record.Username); err != nil {
		t.Error(err)
	}
	if outcome, err := user.Converge(t.Context()); err != nil || !outcome.Verified {
		t.Errorf("in the end, Converge returns %+v, %v", outcome, err)
	}
}
