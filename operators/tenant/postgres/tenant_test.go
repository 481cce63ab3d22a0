package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// In steady state nothing is written, as the server's own log of each statement shows; and little is asked.
func TestSteadyStateWritesNothing(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "steady")
	before := len(said("steady"))
	for range 3 {
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
			t.Errorf("it wrote: %t, %v", wrote, err)
		}
		if wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil || wrote {
			t.Errorf("it wrote limits: %t, %v", wrote, err)
		}
		if state := app.observe(t, record); state != credential.Accepted {
			t.Errorf("the login is %s", state)
		}
	}
	steady := said("steady")[before:]
	if wrote := writes(slices.Clone(steady)); len(wrote) > 0 {
		t.Errorf("it wrote %q", wrote)
	}
	// One each looks at the tenant, inside of its database and, twice, at logins; one asks a new connection whether it is to a standby.
	if len(steady) != 3*5 {
		t.Errorf("it said %d statements, want 5 a pass: %q", len(steady), steady)
	}
}

// Converge corrects each manual change on its own.
func TestForeignChangesAreReverted(t *testing.T) {
	t.Parallel()
	app := newApp(t, "repair")
	app.converge(t)
	for _, harm := range []struct{ database, how string }{
		{"postgres", "REVOKE CONNECT ON DATABASE t_repair FROM t_repair_rw"},
		{"postgres", "GRANT CONNECT ON DATABASE t_repair TO PUBLIC"},
		{"postgres", "GRANT TEMPORARY ON DATABASE t_repair TO PUBLIC"},
		{"postgres", "REVOKE t_repair FROM admin GRANTED BY admin"},
		{"t_repair", "DROP OWNED BY t_repair_ro"},
		{"t_repair", "GRANT CREATE ON SCHEMA public TO PUBLIC"},
		{"t_repair", "ALTER DEFAULT PRIVILEGES FOR ROLE t_repair REVOKE ALL ON TABLES FROM t_repair_rw"},
		{"t_repair", "ALTER DEFAULT PRIVILEGES FOR ROLE t_repair REVOKE UPDATE ON SEQUENCES FROM t_repair_rw"},
		{"postgres", "DROP DATABASE t_repair"},
	} {
		super(t, harm.database, harm.how)
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || !wrote {
			t.Errorf("%s: it wrote: %t, %v", harm.how, wrote, err)
		}
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
			t.Errorf("%s: the second time it wrote: %t, %v", harm.how, wrote, err)
		}
	}
	super(t, "t_repair", "DROP SCHEMA public")
	if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
		t.Errorf("a tenant that has no schema public is written: %t, %v", wrote, err)
	}
}

// Converge does not change what belongs to another owner or has no mark.
func TestWhatIsAnothersIsLeft(t *testing.T) {
	t.Parallel()
	for name, made := range map[string][]string{
		"foreign-role":     {`CREATE ROLE "%"`, `COMMENT ON ROLE "%" IS 'tenants.example.com@other//%'`},
		"foreign-group":    {`CREATE ROLE "%_rw"`, `COMMENT ON ROLE "%_rw" IS 'another owner'`},
		"foreign-database": {`CREATE DATABASE "%"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newApp(t, name)
			super(t, "postgres", strings.Split(strings.ReplaceAll(strings.Join(made, ";"), "%", app.tenant.Owner), ";")...)
			before := len(said(name))
			app.conflicts(t)
			app.tenant.Adopt, app.tenant.DropDatabase = true, true
			app.conflicts(t)
			if err := app.tenant.Delete(t.Context(), app.mark); err != nil && !errors.Is(err, credential.ErrConflict) {
				t.Errorf("deleted: %v", err)
			}
			if wrote := writes(said(name)[before:]); len(wrote) > 0 {
				t.Errorf("it said %q", wrote)
			}
		})
	}
}

// conflicts expects that a convergence finds what is another's.
func (a app) conflicts(t *testing.T) {
	t.Helper()
	wrote, err := a.tenant.Converge(t.Context(), a.mark)
	if !errors.Is(err, credential.ErrConflict) || wrote || !strings.Contains(err.Error(), a.tenant.Owner) {
		t.Errorf("it wrote: %t, %v", wrote, err)
	}
}

// Roles that carry no mark are taken over only on request, and where the admin may. Since
// version 16 it needs a grant for that, and the error says so.
func TestUnmarkedRolesAreAdoptedOnRequest(t *testing.T) {
	t.Parallel()
	app := newApp(t, "adopted")
	super(t, "postgres", "CREATE ROLE t_adopted", "CREATE DATABASE t_adopted OWNER t_adopted")
	app.conflicts(t)
	app.tenant.Adopt = true
	if since16(t) {
		_, err := app.tenant.Converge(t.Context(), app.mark)
		if !errors.Is(err, postgres.ErrRights) || !strings.Contains(err.Error(), "WITH ADMIN OPTION") || !strings.Contains(err.Error(), `"t_adopted"`) {
			t.Errorf("what the admin may not change: %v", err)
		}
	}
	super(t, "postgres", "GRANT t_adopted TO admin WITH ADMIN OPTION")
	app.converge(t)
	app.tenant.Adopt = false
	if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
		t.Errorf("what is adopted is not the owner's: it wrote: %t, %v", wrote, err)
	}
}

// A tenant's login does not get into another's database, nor its role; one that reads does not write; and one that
// reads and writes makes nothing.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	mine, owner := madeApp(t, "isolated")
	other, stranger := madeApp(t, "isolated-other")
	logins := map[postgres.Access]credential.Record{postgres.AsOwner: owner}
	for i, access := range []postgres.Access{postgres.ReadWrite, postgres.ReadOnly} {
		mine.logins.Access = access
		record := mine.record(t, 1)
		record.Username += []string{"_writer", "_reader"}[i]
		if err := mine.logins.Create(t.Context(), mine.mark, record); err != nil {
			t.Fatal(err)
		}
		logins[access] = record
	}
	execute(t, connect(t, mine.tenant.Database, owner), "CREATE TABLE notes (id serial, body text)",
		"CREATE SCHEMA more", "CREATE TABLE more.notes (body text)", "INSERT INTO notes (body) VALUES ('one')")

	_, err := pgx.Connect(t.Context(), shared.DSNOf(stranger.Username, stranger.Password.Reveal(), mine.tenant.Database))
	denied(t, "another tenant's login connects", err)
	outside := connect(t, other.tenant.Database, stranger)
	for _, role := range []string{mine.tenant.Owner, mine.tenant.ReadWrite, mine.tenant.ReadOnly, owner.Username} {
		_, err := outside.Exec(t.Context(), `SET ROLE "`+role+`"`)
		denied(t, "another tenant's login works as "+role, err)
	}

	for access, may := range map[postgres.Access]map[string]bool{
		postgres.AsOwner: {
			"SELECT * FROM notes, more.notes AS others": true, "INSERT INTO notes (body) VALUES ('x')": true,
			"CREATE TABLE x ()": true, "CREATE TEMPORARY TABLE y ()": true, "SELECT setval('notes_id_seq', 100)": true,
		},
		postgres.ReadWrite: {
			"SELECT * FROM notes, more.notes AS others": true, "INSERT INTO notes (body) VALUES ('x')": true, "DELETE FROM more.notes": true,
			"SELECT setval('notes_id_seq', 100)": true, "CREATE TEMPORARY TABLE y ()": true,
			"CREATE TABLE z ()": false, "DROP TABLE notes": false, "SET ROLE t_isolated": false, "TRUNCATE notes": false,
		},
		postgres.ReadOnly: {
			"SELECT * FROM notes, more.notes AS others": true, "SELECT last_value FROM notes_id_seq": true,
			"INSERT INTO notes (body) VALUES ('x')": false, "UPDATE notes SET body = ''": false, "DELETE FROM more.notes": false,
			"SELECT nextval('notes_id_seq')": false, "CREATE TABLE z ()": false, "CREATE TEMPORARY TABLE z ()": false,
			"SET ROLE t_isolated_rw": false,
		},
	} {
		connection := connect(t, mine.tenant.Database, logins[access])
		for statement, allowed := range may {
			_, err := connection.Exec(t.Context(), statement)
			if allowed && err != nil {
				t.Errorf("%s cannot %s: %v", access, statement, err)
			}
			if !allowed {
				denied(t, string(access)+" can "+statement, err)
			}
		}
	}
}

// denied expects an error for missing privileges.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "SQLSTATE 42501") {
		t.Errorf("%s: %v", what, err)
	}
}

// A session of a superuser, which the administrator may not end, keeps a database busy. The error says so, and does not ask for more rights.
func TestADatabaseThatASuperuserUsesIsBusy(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "busy")
	if err := app.logins.Delete(t.Context(), app.mark, record.Username); err != nil {
		t.Fatal(err)
	}
	app.tenant.DropDatabase = true
	inside := superuser(t, app.tenant.Database)
	err := app.tenant.Delete(t.Context(), app.mark)
	if !errors.Is(err, postgres.ErrInUse) || errors.Is(err, postgres.ErrRights) || !strings.Contains(err.Error(), "1 other session") ||
		!strings.Contains(err.Error(), fmt.Sprintf("session %d of role super in database t_busy uses it", inside.PgConn().PID())) {
		t.Errorf("the superuser's session is there: %v", err)
	}
	_ = inside.Close(t.Context())
	eventually(t, "the database is dropped", func() bool { return app.tenant.Delete(t.Context(), app.mark) == nil })
}

// Logins go first and data goes only on request; what depends stays, with a word on it; each call can be the second.
func TestDeletionKeepsWhatOthersOwn(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "deletion")
	connection := connect(t, app.tenant.Database, record)
	execute(t, connection, "CREATE TABLE kept ()", "SET ROLE NONE", "CREATE TABLE own (body text)", "INSERT INTO own VALUES ('x')")
	err := app.logins.Delete(t.Context(), app.mark, record.Username)
	if !errors.Is(err, postgres.ErrDependent) || !strings.Contains(err.Error(), "1 object in database t_deletion") {
		t.Errorf("a login that owns a table is dropped: %v", err)
	}
	if state := app.observe(t, record); state != credential.Retired || connection.Ping(t.Context()) == nil {
		t.Errorf("it is %s, or its session goes on", state)
	}
	if err := app.tenant.Delete(t.Context(), app.mark); !errors.Is(err, postgres.ErrDependent) {
		t.Errorf("a database was dropped without DropDatabase: %v", err)
	}
	other := app.mark
	other.Name = "other"
	if err := app.logins.Delete(t.Context(), other, record.Username); !errors.Is(err, credential.ErrConflict) {
		t.Errorf("another drops it: %v", err)
	}
	app.logins.DropOwned = true
	for range 2 {
		if err := app.logins.Delete(t.Context(), app.mark, app.names.Login(1), app.names.Login(2)); err != nil {
			t.Errorf("with DropOwned: %v", err)
		}
	}
	inside := superuser(t, app.tenant.Database)
	var owners []string
	if err := inside.QueryRow(t.Context(), "SELECT array_agg(tableowner::text) FROM pg_tables WHERE schemaname = 'public'").Scan(&owners); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(owners, []string{"t_deletion", "t_deletion"}) {
		t.Errorf("the tables belong to %q: what the login owned is lost", owners)
	}
	_ = inside.Close(t.Context())
	eventually(t, "the superuser's session has ended", func() bool {
		return ask[int](t, "SELECT count(*) FROM pg_stat_activity WHERE datname = 't_deletion'") == 0
	})
	app.tenant.DropDatabase = true
	for range 2 {
		if err := app.tenant.Delete(t.Context(), app.mark); err != nil {
			t.Errorf("with DropDatabase: %v", err)
		}
	}
	if left := ask[int](t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 't\\_deletion%'"); left != 0 {
		t.Errorf("%d roles are left", left)
	}
	app.converge(t)
}

// Many delete at once, and none fails.
func TestManyAtOnceDelete(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "farewell")
	app.tenant.DropDatabase = true
	results := make(chan error)
	for range 4 {
		go func() {
			err := app.logins.Delete(context.Background(), app.mark, record.Username)
			if err == nil {
				err = app.tenant.Delete(context.Background(), app.mark)
			}
			results <- err
		}()
	}
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
