package postgres_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// A DSN of several hosts leads to the primary, for what is done inside a tenant's database and for the proofs of logins too, although a
// standby comes first that has not got the tenant yet.
func TestAStandbyThatComesFirstIsPassed(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t)
	if err := primary.Stop(); err != nil {
		t.Fatal(err)
	}
	standby := standbyOf(t, primary)
	for _, one := range []*servers.Postgres{primary, standby} {
		if err := one.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = standby.Kill() })
	closeToPublic(t, primary.DSN())
	dsn, err := url.Parse(primary.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	dsn.Host = standby.Address() + "," + primary.Address()
	app := appIn(t, dsn.String(), "hosts")
	app.converge(t)
	record := app.record(t, 1)
	if err := app.logins.Create(t.Context(), app.mark, record); err != nil {
		t.Fatal(err)
	}
	if state := app.observe(t, record); state != credential.Accepted {
		t.Errorf("the login is %s", state)
	}
	record.Password = credential.NewPassword("wrong")
	if state := app.observe(t, record); state != credential.Refused {
		t.Errorf("with a wrong password the login is %s", state)
	}
}

// closeToPublic does what docs/operators/tenant.md, "PostgreSQL", asks of a superuser.
func closeToPublic(t *testing.T, dsn string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	execute(t, connection, "GRANT CONNECT ON DATABASE postgres TO admin", "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC")
}

// standbyOf copies a server that was stopped to one that is a standby, and does not follow it.
func standbyOf(t *testing.T, primary *servers.Postgres) *servers.Postgres {
	t.Helper()
	folder := primary.Dir + "-standby"
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if said, err := exec.CommandContext(t.Context(), "cp", "-a", primary.Dir, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := os.Remove(filepath.Join(folder, "port")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "data", "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return &servers.Postgres{Dir: folder}
}
