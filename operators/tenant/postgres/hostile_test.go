package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// A tenant owns its database, and can make functions there of the names that the admin calls. The admin
// calls none of them, whatever the database says of where to look first (CVE-2018-1058).
func TestATenantsFunctionsAreNotCalledByTheAdmin(t *testing.T) {
	t.Parallel()
	for name, lure := range map[string]string{
		"lure-path": `CREATE SCHEMA lure;
			CREATE FUNCTION lure.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
				EXECUTE 'CREATE ROLE "t_lure-path_taken"'; RETURN false; END $f$;
			ALTER DATABASE "t_lure-path" SET search_path = lure, pg_catalog`,
		"lure-overload": `CREATE FUNCTION public.json_build_object(text, json, text, json) RETURNS json LANGUAGE plpgsql AS $f$ BEGIN
				EXECUTE 'CREATE ROLE "t_lure-overload_taken"'; RETURN '{}'; END $f$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, record := madeApp(t, name)
			session := connect(t, app.tenant.Database, record)
			if _, err := session.Exec(t.Context(), lure); err != nil {
				t.Fatal(err)
			}
			if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
				t.Errorf("it wrote: %t, %v", wrote, err)
			}
			if taken := ask[int](t, "SELECT count(*) FROM pg_roles WHERE rolname = $1", app.tenant.Owner+"_taken"); taken > 0 {
				t.Error("the admin has called the tenant's function: with it the tenant has the admin's rights")
			}
		})
	}
}

// The proof of a login runs no code of the tenant, whatever search_path the database or the login has. Such code would have the rights of the
// new login, and could replace its password before readers get it.
func TestTheProofOfALoginRunsNoCodeOfTheTenant(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	for name, set := range map[string]string{
		"proof-database": `ALTER DATABASE "t_proof-database" SET search_path = evil, pg_catalog`,
		"proof-login":    `ALTER ROLE "t_proof-login_web_a" SET search_path = evil, pg_catalog`,
	} {
		for _, answer := range []string{"false", "true"} {
			t.Run(name+"/"+answer, func(t *testing.T) {
				app, record := madeApp(t, name)
				execute(t, connect(t, app.tenant.Database, record), `CREATE SCHEMA evil`,
					`CREATE FUNCTION evil.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
						EXECUTE 'SET ROLE NONE'; EXECUTE 'ALTER ROLE CURRENT_USER PASSWORD ''evil'''; RETURN `+answer+`; END $f$`)
				super(t, "postgres", set)
				for range 2 {
					if state, err := app.logins.Observe(t.Context(), app.mark, record.Username, record.Password); err != nil || state != credential.Accepted {
						t.Errorf("the login is %q, %v", state, err)
					}
				}
				for line := range strings.Lines(shared.Log()) {
					if strings.Contains(line, record.Username+"@"+app.tenant.Database+" "+name+": LOG:  ") {
						t.Errorf("the proof has executed something: %s", line)
					}
				}
				connection, err := pgx.Connect(t.Context(), shared.DSNOf(record.Username, "evil", app.tenant.Database))
				if err == nil {
					_ = connection.Close(t.Context())
					t.Error("the tenant has chosen the password of the login")
				}
			})
		}
	}
}

// An owner can close its database to others and to itself. The operator opens it again, from outside of it.
func TestATenantCannotCloseItsDatabase(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "closed")
	connect(t, app.tenant.Database, record)
	session := connect(t, "postgres", record)
	for _, harm := range []string{
		"ALTER DATABASE t_closed CONNECTION LIMIT 1", "ALTER DATABASE t_closed ALLOW_CONNECTIONS false",
		"REVOKE CONNECT ON DATABASE t_closed FROM t_closed", "REVOKE ALL ON DATABASE t_closed FROM t_closed, t_closed_rw, t_closed_ro",
	} {
		execute(t, session, harm)
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || !wrote {
			t.Errorf("%s: it wrote: %t, %v", harm, wrote, err)
		}
		if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
			t.Errorf("%s: the second time it wrote: %t, %v", harm, wrote, err)
		}
		if state, err := app.logins.Observe(t.Context(), app.mark, record.Username, record.Password); err != nil || state != credential.Accepted {
			t.Errorf("%s: the login is %q, %v", harm, state, err)
		}
	}
}

// What a login owns in a database of others is named, and handed over or dropped where that is allowed. PUBLIC may connect to the database
// postgres unless an administrator revokes that.
func TestALargeObjectElsewhereDoesNotKeepATenant(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "elsewhere")
	execute(t, connect(t, "postgres", record), "SELECT lo_create(0)", "SET ROLE NONE", "SELECT lo_create(0)")
	owned := func() int {
		return ask[int](t, "SELECT count(*) FROM pg_largeobject_metadata WHERE pg_get_userbyid(lomowner) ^@ 't_elsewhere'")
	}
	defer super(t, "postgres", "SELECT lo_unlink(oid) FROM pg_largeobject_metadata WHERE pg_get_userbyid(lomowner) ^@ 't_elsewhere'")
	err := app.logins.Delete(t.Context(), app.mark, record.Username)
	if !errors.Is(err, postgres.ErrDependent) || !strings.Contains(err.Error(), `database postgres`) || owned() != 2 {
		t.Errorf("%d large objects are there, %v", owned(), err)
	}
	app.logins.DropOwned = true
	if err := app.logins.Delete(t.Context(), app.mark, record.Username); err != nil || owned() != 2 {
		t.Errorf("with DropOwned %d large objects are there, %v", owned(), err)
	}
	app.tenant.DropDatabase = true
	for range 2 {
		if err := app.tenant.Delete(t.Context(), app.mark); err != nil || owned() != 0 {
			t.Errorf("with DropDatabase %d large objects are there, %v", owned(), err)
		}
	}
}

// Every connection of the operator, the proof's too, says where functions are looked for before the tenant's settings can.
func TestEveryConnectionHasASafeSearchPath(t *testing.T) {
	t.Parallel()
	newApp(t, "paths") // It is dropped with the test.
	way, dsn := newWire(t, 0)
	app := appIn(t, dsn, "paths")
	app.converge(t)
	record := app.record(t, 1)
	if err := app.logins.Create(t.Context(), app.mark, record); err != nil {
		t.Fatal(err)
	}
	app.observe(t, record)
	way.mu.Lock()
	defer way.mu.Unlock()
	proofs := 0
	for _, hello := range way.hellos {
		if !strings.Contains(hello, "search_path\x00pg_catalog, pg_temp\x00") {
			t.Errorf("a connection begins with %q", hello)
		}
		if strings.Contains(hello, "user\x00"+record.Username+"\x00") {
			proofs++
		}
	}
	if proofs == 0 || len(way.hellos) < 3 {
		t.Errorf("there are %d connections, %d of them proofs", len(way.hellos), proofs)
	}
}

// A login can have a setting of any size that is not valid, about which the server sends a warning with the whole value to each session of the login.
// Nothing of that size reaches the operator.
func TestASettingOfATenantIsNotSentToTheOperator(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "warned")
	const size = 4 << 20
	execute(t, connect(t, app.tenant.Database, record), "SET ROLE NONE",
		"ALTER ROLE CURRENT_USER SET default_text_search_config = '"+strings.Repeat("x", size)+"'")
	way, dsn := newWire(t, 0)
	state, err := appIn(t, dsn, "warned").logins.Observe(t.Context(), app.mark, record.Username, record.Password)
	if err != nil || state != credential.Accepted {
		t.Errorf("the login is %q, %v", state, err)
	}
	if longest := way.longest.Load(); longest > 16<<10 {
		t.Errorf("the server sent a message of %d bytes", longest)
	}
}

// A server sends a message of any size where a tenant has put it. It is not read, and does not count against the server, which all tenants share.
func TestAMessageThatIsTooLongIsNotRead(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "long")
	way, dsn := newWire(t, 0)
	way.warn(5 << 20)
	other := appIn(t, dsn, "long")
	for range 10 {
		if _, err := other.logins.Observe(t.Context(), app.mark, record.Username, record.Password); err == nil || errors.Is(err, postgres.ErrDown) ||
			!strings.Contains(err.Error(), "a message of more than 4194304 bytes") {
			t.Fatalf("got %v", err)
		}
	}
	way.warn(0)
	if state := other.observe(t, record); state != credential.Accepted {
		t.Errorf("the login is %q", state)
	}
}

// docs/operators/tenant.md, reason ConnectionPooler: a pooler can drop the startup parameters that protect the administrator's sessions. Nothing is
// executed behind one, and the error names its address.
func TestNothingIsExecutedBehindAPooler(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "bouncer")
	way, dsn := newWire(t, 0)
	way.pool()
	other := appIn(t, dsn, "bouncer-operator")
	_, seen := other.logins.Observe(t.Context(), app.mark, record.Username, record.Password)
	_, converged := other.tenant.Converge(t.Context(), app.mark)
	for _, err := range []error{other.server.Check(t.Context()), seen, converged} {
		if !errors.Is(err, postgres.ErrPooler) || errors.Is(err, postgres.ErrDown) || !strings.Contains(err.Error(), "127.0.0.1:") {
			t.Errorf("got %v", err)
		}
	}
	for _, statement := range said("bouncer-operator") {
		if statement != "SELECT pg_catalog.pg_backend_pid()" {
			t.Errorf("it executed %s", statement)
		}
	}
}
