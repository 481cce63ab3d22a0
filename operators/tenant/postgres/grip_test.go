package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// A login that holds the lock of its own role in an open transaction cannot keep the access that it had.
func TestALoginCannotHoldOnToItsAccess(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "clinging")
	session := connect(t, app.tenant.Database, record)
	execute(t, session, "SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER SET work_mem = '1MB'")
	app.logins.Access = postgres.ReadOnly
	ctx, cancel := context.WithTimeout(t.Context(), revokedWithin)
	defer cancel()
	if wrote, err := app.logins.Converge(ctx, app.mark, record.Username); err != nil || !wrote {
		t.Errorf("it wrote: %t, %v", wrote, err)
	}
	if _, err := connect(t, app.tenant.Database, record).Exec(t.Context(), "CREATE TABLE notes ()"); err == nil {
		t.Error("a login that reads only has made a table")
	}
}

// Settings that a login makes for itself in its database do not stand over its access and its limits.
func TestSettingsInADatabaseDoNotStandOverLimits(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "overruled")
	app.logins.Limits = postgres.Limits{StatementTimeout: time.Minute}
	app.logins.Access = postgres.ReadWrite
	if _, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, app.tenant.Database, record), "SET ROLE NONE",
		`ALTER ROLE CURRENT_USER IN DATABASE t_overruled SET role = 'none'`, `ALTER ROLE CURRENT_USER IN DATABASE t_overruled SET statement_timeout = 0`,
		`ALTER ROLE CURRENT_USER IN DATABASE t_overruled SET work_mem = '2MB'`)
	for _, want := range []bool{true, false} {
		if wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil || wrote != want {
			t.Errorf("it wrote: %t, %v, want %t", wrote, err, want)
		}
	}
	session, got := connect(t, app.tenant.Database, record), [3]string{}
	err := session.QueryRow(t.Context(), "SELECT current_user, current_setting('statement_timeout'), current_setting('work_mem')").Scan(&got[0], &got[1], &got[2])
	if want := [3]string{"t_overruled_rw", "1min", "2MB"}; err != nil || got != want {
		t.Errorf("a session has %q, want %q (%v)", got, want, err)
	}
}

// A prepared transaction holds its locks without a session. It does not hold up a revocation or a deletion, in whatever role of the tenant and in
// whatever database it was prepared.
func TestAPreparedTransactionHoldsUpNoRevocation(t *testing.T) {
	t.Parallel()
	for name, grip := range map[string]struct{ database, role, encoding string }{
		"prepared-login": {"", "NONE", ""}, "prepared-owner": {"", `"t_prepared-owner"`, ""}, "prepared-elsewhere": {"postgres", "NONE", ""},
		"prepared-encoded": {"", "NONE", "LATIN1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, leaked := madeApp(t, name)
			database := grip.database
			if database == "" {
				database = app.tenant.Database
			}
			session := connect(t, database, leaked)
			if grip.encoding != "" { // Names are sent to new sessions in that encoding.
				execute(t, session, `ALTER DATABASE "`+database+`" SET client_encoding = `+grip.encoding, "SET client_encoding = UTF8")
			}
			execute(t, session, "SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER PASSWORD '"+leaked.Password.Reveal()+"'",
				"SET LOCAL ROLE "+grip.role, `PREPARE TRANSACTION 'ça, it''s `+name+`'`)
			next := app.record(t, 2)
			next.Username = leaked.Username
			app.logins.Terminate = true
			ctx, cancel := context.WithTimeout(t.Context(), revokedWithin)
			defer cancel()
			if err := app.logins.Set(ctx, app.mark, credential.Assignment{Record: next}); err != nil {
				t.Error(err)
			}
			app.expect(t, "after the revocation", map[credential.Record]credential.State{leaked: credential.Refused, next: credential.Accepted})
			prepareAgain(t, app, next)
			app.logins.DropOwned, app.tenant.DropDatabase = true, true
			if err := errors.Join(app.logins.Delete(t.Context(), app.mark, leaked.Username), app.tenant.Delete(t.Context(), app.mark)); err != nil {
				t.Error(err)
			}
		})
	}
}

// prepareAgain prepares a transaction that holds locks on the role and on a table of the tenant's database.
func prepareAgain(t *testing.T, of app, record credential.Record) {
	t.Helper()
	session := connect(t, of.tenant.Database, record)
	execute(t, session, "CREATE TABLE notes ()", "SET ROLE NONE", "BEGIN", "LOCK TABLE notes",
		"ALTER ROLE CURRENT_USER SET work_mem = '1MB'", "PREPARE TRANSACTION 'again "+of.tenant.Owner+"'")
}
