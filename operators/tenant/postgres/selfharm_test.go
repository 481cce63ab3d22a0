package postgres_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// selfHarm is what the owner of a database, or a login for itself, can do to keep others out. NAME is that of the database and of its owner.
func selfHarm() map[string][]string {
	asItself := func(statement string) []string { return []string{"SET ROLE NONE", statement} }
	return map[string][]string{
		"library-of-database": {"ALTER DATABASE NAME SET local_preload_libraries = 'nope'"},
		"library-of-login":    asItself("ALTER ROLE CURRENT_USER SET local_preload_libraries = 'nope'"),
		"role-of-database":    {"ALTER DATABASE NAME SET role = NAME"},
		"read-only":           {"ALTER DATABASE NAME SET default_transaction_read_only = on"},
		"isolation":           {"ALTER DATABASE NAME SET default_transaction_isolation = 'serializable'", "ALTER DATABASE NAME SET default_transaction_deferrable = on"},
		"idle-timeout":        {"ALTER DATABASE NAME SET idle_session_timeout = 1"},
		"tcp-timeout":         asItself("ALTER ROLE CURRENT_USER SET tcp_user_timeout = 1"),
		"template":            {"ALTER DATABASE NAME IS_TEMPLATE true"},
		"no-connections":      {"ALTER DATABASE NAME CONNECTION LIMIT 0"},
		"closed-to-all":       {"ALTER DATABASE NAME ALLOW_CONNECTIONS false"},
		"no-right":            {"REVOKE ALL ON DATABASE NAME FROM NAME, NAME_rw, NAME_ro"},
		"owned-by-a-login":    asItself("REASSIGN OWNED BY NAME TO NAME_web_a"),
		"timeout":             {"ALTER DATABASE NAME SET transaction_timeout = 1"},
	}
}

// Whatever a tenant sets to keep others out of its database, a password that leaked is replaced within ten seconds and all its sessions end. Then
// the tenant and its logins are deleted.
func TestATenantThatLocksItselfOutCanBeRevoked(t *testing.T) {
	t.Parallel()
	for name, harm := range selfHarm() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, leaked := madeApp(t, "harm-"+name)
			app.harm(t, leaked, harm)
			app.expect(t, "after the harm", map[credential.Record]credential.State{leaked: credential.Accepted})
			next := app.record(t, 2)
			next.Username = leaked.Username
			app.logins.Terminate = true
			ctx, cancel := context.WithTimeout(t.Context(), revokedWithin)
			defer cancel()
			begun := time.Now()
			err := app.logins.Set(ctx, app.mark, credential.Assignment{Record: next})
			if took := time.Since(begun); err != nil || took > revokedWithin {
				t.Errorf("after %s: %v", took, err)
			}
			app.expect(t, "after the revocation", map[credential.Record]credential.State{leaked: credential.Refused, next: credential.Accepted})
			noSessionIsLeft(t, "usename", leaked.Username)
			app.logins.DropOwned, app.tenant.DropDatabase = true, true
			if err := errors.Join(app.logins.Delete(t.Context(), app.mark, leaked.Username), app.tenant.Delete(t.Context(), app.mark)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A database that its owner has given to a login is taken back, so that the tenant has no conflict.
func TestADatabaseThatATenantHasGivenAwayIsTakenBack(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "given-away")
	app.harm(t, record, []string{"CREATE TABLE notes ()", "SET ROLE NONE", "REASSIGN OWNED BY NAME TO NAME_web_a"})
	for _, want := range []bool{true, false} {
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote != want {
			t.Errorf("it wrote: %t, %v, want %t", wrote, err, want)
		}
	}
	owner := ask[string](t, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = $1", app.tenant.Database)
	if owner != app.tenant.Owner {
		t.Errorf("the database belongs to %s", owner)
	}
}

// A database that an administrator has given to a role of others is not touched, and is named. The logins need only their own marks: a password that
// leaked is replaced all the same.
func TestADatabaseOfOthersHoldsUpNoRevocation(t *testing.T) {
	t.Parallel()
	app, leaked := madeApp(t, "sold")
	super(t, "postgres", "ALTER DATABASE t_sold OWNER TO admin")
	if wrote, err := app.tenant.Converge(t.Context(), app.mark); wrote || !errors.Is(err, postgres.ErrIncomplete) || !errors.Is(err, credential.ErrConflict) {
		t.Errorf("it wrote: %t, %v", wrote, err)
	}
	next := app.record(t, 2)
	next.Username = leaked.Username
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: next}); err != nil {
		t.Error(err)
	}
	app.expect(t, "after the revocation", map[credential.Record]credential.State{leaked: credential.Refused, next: credential.Accepted})
}

// harm does harm in a session that stays open, as far as the version of the server lets it.
func (a app) harm(t *testing.T, record credential.Record, statements []string) {
	t.Helper()
	if strings.Contains(statements[0], "transaction_timeout") && ask[int](t, "SELECT current_setting('server_version_num')::int") < 170000 {
		t.Skip("transaction_timeout exists since version 17")
	}
	inside, outside := connect(t, a.tenant.Database, record), connect(t, "postgres", record)
	for _, statement := range statements {
		session := inside
		if strings.HasPrefix(statement, "ALTER DATABASE") { // A session cannot close its own database.
			session = outside
		}
		named := regexp.MustCompile(`NAME(_\w+)?`).ReplaceAllString(statement, `"`+a.tenant.Owner+`$1"`)
		if _, err := session.Exec(t.Context(), named); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// A tenant can fill the settings of its roles with megabytes. The operator reads of them only what it manages, and no more than it needs.
func TestSettingsOfAnySizeAreReadInABoundedWay(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "large-settings")
	session := connect(t, app.tenant.Database, record)
	const size = 4 << 20
	execute(t, session, "SET ROLE NONE", "SELECT set_config('search_path', repeat('x', "+strconv.Itoa(size)+"), false)",
		"ALTER ROLE CURRENT_USER SET search_path FROM CURRENT")
	_, dsn := newWire(t, 0) // It carries no message of more than a megabyte.
	appIn(t, dsn, "large-settings").expect(t, "beside large settings", map[credential.Record]credential.State{record: credential.Accepted})
}
