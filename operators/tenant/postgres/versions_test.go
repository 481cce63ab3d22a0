package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// since16 reports whether the server is one in which CREATEROLE does not allow changing roles of other creators, and in which the rights on a
// role is said for each membership.
func since16(t *testing.T) bool {
	t.Helper()
	return ask[bool](t, "SELECT current_setting('server_version_num')::int >= 160000")
}

// After an upgrade to 16 an admin changes no role that it has no ADMIN option
// on. Those that are made in 15 get it when they are made, and those that were made before that when they are looked at.
func TestTheAdminKeepsItsRolesWhenTheServerIsUpgraded(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "upgraded")
	const mayNot = `SELECT coalesce(array_agg(rolname::text), '{}') FROM pg_roles
		WHERE rolname ^@ 't_upgraded' AND NOT pg_has_role('admin', oid, 'MEMBER WITH ADMIN OPTION')`
	if left := ask[[]string](t, mayNot); len(left) > 0 {
		t.Errorf("after an upgrade to 16 the admin could not change %q", left)
	}
	if since16(t) {
		return // Only a superuser can give it back.
	}
	super(t, "postgres", "REVOKE t_upgraded, t_upgraded_rw, t_upgraded_ro, "+record.Username+" FROM admin")
	for _, want := range []bool{true, false} {
		wrote, err := app.tenant.Converge(t.Context(), app.mark)
		limited, failed := app.logins.Converge(t.Context(), app.mark, record.Username)
		if errors.Join(err, failed) != nil || wrote != want || limited != want {
			t.Errorf("it wrote: %t, %v; %t, %v; want %t", wrote, err, limited, failed, want)
		}
	}
	if left := ask[[]string](t, mayNot); len(left) > 0 {
		t.Errorf("the admin still could not change %q", left)
	}
}

// Whatever the admin gives itself of roles that it makes, a tenant is made, an app goes
// over to its other login, sessions are ended, and all is deleted.
func TestWhateverTheAdminGivesItselfTenantsLive(t *testing.T) {
	t.Parallel()
	gives := map[string]string{"nothing": ""}
	if since16(t) {
		gives = map[string]string{"nothing": "", "set": "set", "inherit": "inherit", "both": "set, inherit"}
	}
	for name, gives := range gives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := "giver-" + name
			super(t, "postgres", `DROP ROLE IF EXISTS "`+admin+`"`, `CREATE ROLE "`+admin+`" LOGIN CREATEROLE CREATEDB PASSWORD 'giver-password'`)
			if gives != "" {
				super(t, "postgres", `ALTER ROLE "`+admin+`" SET createrole_self_grant = '`+gives+`'`)
			}
			appIn(t, shared.DSNOf(admin, "giver-password", "postgres"), "gift-"+name).lives(t)
		})
	}
}

// lives expects that an app can go through all that it does in its life.
func (a app) lives(t *testing.T) {
	t.Helper()
	a.logins.Terminate = true
	generations := []credential.Record{a.record(t, 1), a.record(t, 2)}
	if err := a.born(t.Context(), generations); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, a.tenant.Database, generations[1]), "CREATE TABLE notes ()", "SET ROLE NONE", "CREATE TEMPORARY TABLE own ()")
	if wrote, err := a.tenant.Converge(t.Context(), a.mark); err != nil || wrote {
		t.Errorf("in steady state it wrote: %t, %v", wrote, err)
	}
	if err := a.dead(t.Context(), generations); err != nil {
		t.Error(err)
	}
	if left := leftOf(t, a); left != 0 {
		t.Errorf("there is %d left", left)
	}
}

// Another admin goes on with what the one before has made, if it is a
// superuser, or a member of that one.
func TestAnotherAdminGoesOn(t *testing.T) {
	t.Parallel()
	super(t, "postgres", `DROP ROLE IF EXISTS heir`, `CREATE ROLE heir LOGIN CREATEROLE CREATEDB PASSWORD 'heir-password'`, "GRANT admin TO heir")
	for name, dsn := range map[string]string{"superuser": shared.DSN(), "member": shared.DSNOf("heir", "heir-password", "postgres")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, first := madeApp(t, "inherited-"+name)
			heir := appIn(t, dsn, "inherited-"+name)
			heir.logins.Access = postgres.ReadOnly
			if wrote, err := heir.tenant.Converge(t.Context(), heir.mark); err != nil || wrote {
				t.Errorf("in steady state it wrote: %t, %v", wrote, err)
			}
			if wrote, err := heir.logins.Converge(t.Context(), heir.mark, first.Username); err != nil || !wrote {
				t.Errorf("another access is not given: %t, %v", wrote, err)
			}
			before.logins.Access = postgres.ReadOnly
			if wrote, err := before.logins.Converge(t.Context(), before.mark, first.Username); err != nil || wrote {
				t.Errorf("the one before finds another access: %t, %v", wrote, err)
			}
			heir.logins.Access = postgres.AsOwner
			heir.lives(t)
		})
	}
}

// A login that is a member of the right role, and has nothing of it, is put right: all of them at once in
// 15 (NOINHERIT), and each membership by itself since 16.
func TestAMembershipThatDoesNotWorkIsMadeAgain(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "lame")
	harms := []string{"ALTER ROLE " + record.Username + " NOINHERIT"}
	if since16(t) {
		harms = append(harms, "GRANT t_lame TO "+record.Username+" WITH SET FALSE GRANTED BY admin",
			"GRANT t_lame TO "+record.Username+" WITH INHERIT FALSE GRANTED BY admin")
	}
	for _, harm := range harms {
		super(t, "postgres", harm)
		for _, want := range []bool{true, false} {
			if wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil || wrote != want {
				t.Errorf("%s: it wrote: %t, %v; want %t", harm, wrote, err, want)
			}
		}
		if state := app.observe(t, record); state != credential.Accepted {
			t.Errorf("%s: the login is %s", harm, state)
		}
	}
}

// Access is reached by level. Where the admin cannot take a right away, which since version 16 is so
// of all that another has granted, the error says who can, and the work does not count as done.
func TestWhatTheAdminCannotTakeAwayIsTold(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "excess")
	super(t, "postgres", "GRANT t_excess TO "+record.Username)
	app.logins.Access = postgres.ReadOnly
	wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username)
	remedy := `run as a superuser: REVOKE "t_excess" FROM "t_excess_web_a" GRANTED BY "super"`
	if told := errors.Is(err, postgres.ErrRights) && strings.Contains(err.Error(), remedy); !wrote || told != since16(t) {
		t.Errorf("it wrote: %t, %v", wrote, err)
	}
	super(t, "postgres", "REVOKE t_excess FROM "+record.Username)
	if wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil || wrote {
		t.Errorf("after a superuser ran it: it wrote: %t, %v", wrote, err)
	}
}

// docs/operators/tenant.md, reason UnsupportedVersion: nothing is asked of a server that is too old, and the error names it, its version and the
// versions that are supported, and no more.
func TestAServerThatIsTooOldIsTold(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]string{
		"14.23 (Debian 14.23-1.pgdg120+1)": "14.23", "9.6.24": "9.6.24", "none": "none",
		"15.8": "15.8", "15.9 (Debian 15.9-1.pgdg120+1)": "15.9", "16beta1": "16beta1", "16.5": "16.5", "17rc1": "17rc1", "17.1": "17.1",
		"15.10": "", "15.18": "", "16.6": "", "17.2": "", "18beta1": "", "18.0": "", "19devel": "", "100.1-fork": "",
	} {
		way, dsn := newWire(t, 0)
		way.claim(version)
		app := appIn(t, dsn, "old-"+strings.ReplaceAll(strings.Split(version, " ")[0], ".", "-"))
		err := app.server.Check(t.Context())
		if old == "" {
			if err != nil {
				t.Errorf("version %s: %v", version, err)
			}
			continue
		}
		_, address, _ := strings.Cut(dsn, "@")
		address, _, _ = strings.Cut(address, "/")
		want := "PostgreSQL server " + address + " has version " + old + "; supported are 15.10, 16.6 and 17.2 "
		if !errors.Is(err, postgres.ErrVersion) || errors.Is(err, postgres.ErrDown) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "connect") {
			t.Errorf("version %s: %v, want %s", version, err, want)
		}
		app.decidesNothing(t, "on version "+version, postgres.ErrVersion)
		if statements := said(app.mark.Name); len(statements) > 0 {
			t.Errorf("version %s: it said %q", version, statements)
		}
	}
}

// Connection pools send DISCARD ALL when a session is given back. What the session creates afterwards still belongs to the role of the app, so the
// app's next login can use it. On versions that are not supported it belongs to the login.
func TestWhatAPoolCreatesBelongsToTheTenant(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "pooled")
	session := connect(t, app.tenant.Database, record)
	execute(t, session, "DISCARD ALL", "CREATE TABLE invoices ()")
	second := app.record(t, 2)
	if err := app.logins.Create(t.Context(), app.mark, second); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, app.tenant.Database, second), "DISCARD ALL", "SELECT FROM invoices", "DROP TABLE invoices")
}
