package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// shared is the server of all tests but those that stop one. Each has a tenant of its own in it.
var shared *servers.Postgres //nolint:gochecknoglobals // one server for all tests of the package

// TestMain starts the shared server.
func TestMain(m *testing.M) {
	err := servers.WithPostgres(func(server *servers.Postgres) int {
		shared = server
		return m.Run()
	}, "max_connections=200", "max_prepared_transactions=20")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // This is the main of the tests.
	}
}

// app is an app of a tenant, in a server, as an operator sees it.
type app struct {
	names  names.App
	server *postgres.Server
	tenant postgres.Tenant
	logins postgres.Logins
	// mark is the tenant's owner, and the app's.
	mark credential.Owner
}

// newApp is the app "web" of a tenant, in the shared server. Nothing is made yet; what is made is dropped with the test.
func newApp(t *testing.T, tenant string) app {
	t.Helper()
	made := appIn(t, shared.AdminDSN(), tenant)
	t.Cleanup(func() { dropAll(t, made.tenant.Owner) })
	return made
}

// dropAll drops a tenant's database and roles, so that the test can run again.
func dropAll(t *testing.T, owner string) {
	t.Helper()
	ctx := context.Background() // That of the test is over.
	connection, err := pgx.Connect(ctx, shared.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{owner}.Sanitize()+" WITH (FORCE)"); err != nil {
		t.Error(err)
	}
	_, err = connection.Exec(ctx, `DO $do$ DECLARE name text; BEGIN
		FOR name IN SELECT rolname FROM pg_roles WHERE rolname = '`+owner+`' OR rolname ^@ '`+owner+`_' LOOP
			EXECUTE format('DROP ROLE %I', name);
		END LOOP;
	END $do$`)
	if err != nil {
		t.Error(err)
	}
}

// appIn is the app "web" of a tenant, in a server that has the DSN. The application_name of the sessions is the tenant.
func appIn(t *testing.T, dsn, tenant string) app {
	t.Helper()
	server, err := postgres.Open(postgres.Config{DSN: credential.NewPassword(dsn + "&application_name=" + tenant)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	name := names.Tenant{Name: tenant}.App("web")
	return app{
		names: name, server: server, tenant: server.Tenant(names.Tenant{Name: tenant}), logins: server.Logins(name),
		mark: credential.Owner{Operator: "tenants.example.com@test", Name: tenant},
	}
}

// madeApp is newApp with its tenant made, and its first login with a password.
func madeApp(t *testing.T, tenant string) (app, credential.Record) {
	t.Helper()
	made := newApp(t, tenant)
	made.converge(t)
	record := made.record(t, 1)
	if err := made.logins.Create(t.Context(), made.mark, record); err != nil {
		t.Fatal(err)
	}
	return made, record
}

// record is a generation of the app's credential that was not given to any system yet.
func (a app) record(t *testing.T, generation int) credential.Record {
	t.Helper()
	password, err := credential.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return credential.Record{Username: a.names.Login(generation), Password: password, Generation: generation}
}

func (a app) converge(t *testing.T) {
	t.Helper()
	if _, err := a.tenant.Converge(t.Context(), a.mark); err != nil {
		t.Fatal(err)
	}
}

func (a app) observe(t *testing.T, record credential.Record) credential.State {
	t.Helper()
	state, err := a.logins.Observe(t.Context(), a.mark, record.Username, record.Password)
	if err != nil && !errors.Is(err, credential.ErrUnusable) {
		t.Fatal(err)
	}
	return state
}

// connect logs in to a database as whom a record is for.
func connect(t *testing.T, database string, record credential.Record) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), shared.DSNOf(record.Username, record.Password.Reveal(), database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// executeInBackground executes a statement that may take until the test ends.
func executeInBackground(t *testing.T, connection *pgx.Conn, statement string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var executing sync.WaitGroup
	executing.Go(func() { _, _ = connection.Exec(ctx, statement) })
	t.Cleanup(func() {
		cancel()
		executing.Wait() // Before the connection is closed.
	})
}

// super executes statements behind the operator's back.
func super(t *testing.T, database string, statements ...string) {
	t.Helper()
	connection := superuser(t, database)
	defer func() { _ = connection.Close(t.Context()) }()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// ask is the answer to a query behind the operator's back.
func ask[T any](t *testing.T, query string, arguments ...any) (answer T) {
	t.Helper()
	return askIn[T](t, "postgres", query, arguments...)
}

// askIn is ask in a database.
func askIn[T any](t *testing.T, database, query string, arguments ...any) (answer T) {
	t.Helper()
	connection := superuser(t, database)
	defer func() { _ = connection.Close(t.Context()) }()
	if err := connection.QueryRow(t.Context(), query, arguments...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func superuser(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	settings, err := pgx.ParseConfig(shared.DSN())
	if err != nil {
		t.Fatal(err)
	}
	settings.Database = database
	connection, err := pgx.ConnectConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// said are the statements that sessions with the application_name have executed so far, without those by which the pool sees whether a
// connection that was idle for a second is still there.
func said(application string) []string {
	var statements []string
	for line := range strings.Lines(shared.Log()) {
		_, statement, is := strings.Cut(line, " "+application+": LOG:  ")
		if _, of, found := strings.Cut(statement, ": "); is && found && strings.TrimSpace(of) != "-- ping" {
			statements = append(statements, strings.TrimSpace(of))
		}
	}
	return statements
}

// writes are those of the statements that read nothing only.
func writes(statements []string) []string {
	return slices.DeleteFunc(statements, func(one string) bool { return strings.HasPrefix(strings.ToUpper(one), "SELECT") })
}
