package servers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// A real server that stops and starts, and goes on with what it had, at the address that it had.
func TestPostgresGoesOnAfterAnOutage(t *testing.T) {
	server := servers.StartPostgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx, server.DSN(), "CREATE TABLE kept ()"); err != nil {
		t.Fatal(err)
	}
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
		if err := run(ctx, server.DSN(), "CREATE TABLE IF NOT EXISTS kept ()"); err != nil {
			t.Fatal(err)
		}
	}
	if logged := server.Log(); strings.Count(logged, "CREATE TABLE") != 3 {
		t.Errorf("the log has not all statements: %s", logged)
	}
}

// The admin has the rights that a managed server gives, and no more.
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

// The process that runs a server can be killed, and the kernel kills the server's first process then. The others end when they notice, which a
// session that is busy does late; until then PostgreSQL does not start where they are.
func TestPostgresStartsWhereItsFirstProcessWasKilled(t *testing.T) {
	killed := servers.StartPostgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	busy, err := pgx.Connect(ctx, killed.DSN())
	if err != nil {
		t.Fatal(err)
	}
	loop := busy.PgConn().Exec(ctx, "DO $$ BEGIN WHILE clock_timestamp() < now() + interval '2 seconds' LOOP END LOOP; END $$")
	einmaltest.Eventually(t, "a session is busy", func(ctx context.Context) error {
		return run(ctx, killed.DSN(), "SELECT 1 / count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO%'")
	})
	noted, err := os.ReadFile(filepath.Join(killed.Dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(noted))[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	again := &servers.Postgres{Dir: killed.Dir}
	if err := again.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(); err != nil {
		t.Error(err)
	}
	_ = loop.Close() // It was cut.
}

func run(ctx context.Context, dsn, sql string) error {
	connection, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, sql)
	return errors.Join(err, connection.Close(ctx))
}
