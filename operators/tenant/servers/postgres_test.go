package servers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// tenant-and-database.md §5, PostgreSQL: a real server that stops and starts, and goes on with what it had, at the address that it had.
func TestPostgresGoesOnAfterAnOutage(t *testing.T) {
	server := servers.StartPostgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run(ctx, t, server.DSN(), "CREATE TABLE kept ()")
	for _, stop := range []func() error{server.Stop, server.Kill} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if connection, err := pgx.Connect(ctx, server.DSN()); err == nil {
			_ = connection.Close(ctx)
			t.Fatal("a server that is stopped takes connections")
		}
		if err := server.Start(ctx); err != nil {
			t.Fatal(err)
		}
		run(ctx, t, server.DSN(), "CREATE TABLE IF NOT EXISTS kept ()")
	}
	if logged := server.Log(); strings.Count(logged, "CREATE TABLE") != 3 {
		t.Errorf("the log has not all statements: %s", logged)
	}
}

// tenant-and-database.md §6.8: the admin has the rights that a managed server gives, and no more.
func TestPostgresHasAnAdminThatIsNoSuperuser(t *testing.T) {
	server := servers.StartPostgres(t, "max_connections=20")
	connection, err := pgx.Connect(t.Context(), server.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	var super, makesRoles, makesDatabases bool
	var most string
	err = connection.QueryRow(t.Context(), `SELECT rolsuper, rolcreaterole, rolcreatedb, current_setting('max_connections')
		FROM pg_roles WHERE rolname = current_user`).Scan(&super, &makesRoles, &makesDatabases, &most)
	if err != nil || super || !makesRoles || !makesDatabases || most != "20" {
		t.Errorf("superuser %v, CREATEROLE %v, CREATEDB %v, max_connections %s: %v", super, makesRoles, makesDatabases, most, err)
	}
}

func run(ctx context.Context, t *testing.T, dsn, sql string) {
	t.Helper()
	connection, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
