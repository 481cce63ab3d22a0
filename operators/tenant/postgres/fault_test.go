package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// born makes an app's tenant and its first login, and goes over to its second.
func (a app) born(ctx context.Context, generations []credential.Record) error {
	if _, err := a.tenant.Converge(ctx, a.mark); err != nil {
		return err
	}
	for _, record := range generations {
		state, err := a.logins.Observe(ctx, a.mark, record.Username, record.Password)
		if err == nil && state == credential.Absent {
			err = a.logins.Create(ctx, a.mark, record)
		}
		if err != nil {
			return err
		}
	}
	a.logins.Limits.ConnectionLimit = 3
	if _, err := a.logins.Converge(ctx, a.mark, generations[0].Username, generations[1].Username); err != nil {
		return err
	}
	return a.logins.Retire(ctx, a.mark, generations[1], []string{generations[0].Username})
}

// dead deletes all of it.
func (a app) dead(ctx context.Context, generations []credential.Record) error {
	a.logins.DropOwned, a.tenant.DropDatabase = true, true
	if err := a.logins.Delete(ctx, a.mark, generations[0].Username, generations[1].Username); err != nil {
		return err
	}
	return a.tenant.Delete(ctx, a.mark)
}

// A process can die after each change without having heard of it; the next one ends where
// one that lived would have.
func TestWhereverAProcessDiesTheNextOneEndsTheSame(t *testing.T) {
	t.Parallel()
	at := 1
	for ; diesAt(t, at); at++ {
	}
	if at < 10 {
		t.Errorf("a life has %d changes: not all were tried", at-1)
	}
}

// diesAt runs the life cycle of a tenant in processes that crash at the given change. It reports whether that change was reached.
func diesAt(t *testing.T, at int) bool {
	t.Helper()
	way, dsn := newWire(t, at)
	dying, next := appIn(t, dsn, "killed"), newApp(t, "killed")
	defer dying.server.Close()
	defer next.server.Close()
	generations := []credential.Record{next.record(t, 1), next.record(t, 2)}
	err := dying.born(t.Context(), generations)
	if err != nil && (!way.wasCut() || !errors.Is(err, postgres.ErrDown)) {
		t.Errorf("change %d: %v", at, err)
	}
	if err := next.born(t.Context(), generations); err != nil {
		t.Errorf("after a death at change %d: %v", at, err)
	}
	next.expect(t, fmt.Sprint("after a death at change ", at), map[credential.Record]credential.State{
		generations[0]: credential.Retired, generations[1]: credential.Accepted,
	})
	err = dying.dead(t.Context(), generations)
	if err != nil && (!way.wasCut() || !errors.Is(err, postgres.ErrDown)) {
		t.Errorf("change %d: %v", at, err)
	}
	if err := next.dead(t.Context(), generations); err != nil {
		t.Errorf("after a death at change %d: %v", at, err)
	}
	if left := leftOf(t, next); left != 0 {
		t.Errorf("after a death at change %d there is %d left", at, left)
	}
	return way.wasCut()
}

// leftOf counts the roles and databases of a tenant.
func leftOf(t *testing.T, app app) int {
	t.Helper()
	return ask[int](t, `SELECT (SELECT count(*) FROM pg_roles WHERE rolname = $1 OR rolname ^@ ($1 || '_'))
		+ (SELECT count(*) FROM pg_database WHERE datname = $1)`, app.tenant.Owner)
}

// Sessions are ended again and again while a tenant is made, and while it is deleted, first sooner than anything
// can be done, then later and later; in the end all is as it should be.
func TestSessionsThatAreEndedAtAnyTimeDoNoHarm(t *testing.T) {
	t.Parallel()
	app := newApp(t, "storm")
	generations := []credential.Record{app.record(t, 1), app.record(t, 2)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	failures := 0
	for _, live := range []func(context.Context, []credential.Record) error{app.born, app.dead} {
		over := endSessions(ctx, t, "storm")
		failures += persist(ctx, t, func() error { return live(ctx, generations) })
		<-over
	}
	if left := leftOf(t, app); left != 0 || failures == 0 {
		t.Errorf("after %d failures there is %d left", failures, left)
	}
}

// endSessions ends the sessions of an application_name 20 times, within a second.
func endSessions(ctx context.Context, t *testing.T, application string) <-chan struct{} {
	t.Helper()
	killer, over := superuser(t, "postgres"), make(chan struct{})
	go func() {
		defer close(over)
		for i := range 20 {
			<-time.After(time.Duration(5*i) * time.Millisecond)
			_, _ = killer.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", application)
		}
		_ = killer.Close(ctx)
	}()
	return over
}

// persist tries again until there is no error, and counts how often there was.
func persist(ctx context.Context, t *testing.T, try func() error) int {
	t.Helper()
	for failures := 0; ; failures++ {
		err := try()
		if err == nil {
			return failures
		}
		if ctx.Err() != nil || credential.Blocked(err) {
			t.Fatal(err)
		}
	}
}

// A server that is down or that starts is an error, and never an absence; when it is back, all is as it was,
// and nothing is written.
func TestAnOutageDecidesNothing(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	app := appIn(t, server.AdminDSN(), "outage")
	app.converge(t)
	record := app.record(t, 1)
	if err := app.logins.Create(t.Context(), app.mark, record); err != nil {
		t.Fatal(err)
	}
	for when, stop := range map[string]func() error{"stopped": server.Stop, "crashed": server.Kill} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		app.decidesNothing(t, when, postgres.ErrDown)
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the login is accepted again", func() bool {
		state, err := app.logins.Observe(t.Context(), app.mark, record.Username, record.Password)
		return err == nil && state == credential.Accepted
	})
	if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
		t.Errorf("after the outage it wrote: %t, %v", wrote, err)
	}
}

// Nor is it an absence, or a wrong password, that there is no room for another connection.
func TestAServerWithoutRoomDecidesNothing(t *testing.T) {
	t.Parallel()
	super(t, "postgres", `DO $do$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'narrow') THEN
			CREATE ROLE narrow LOGIN CREATEROLE CREATEDB PASSWORD 'narrow-password' CONNECTION LIMIT 0;
		END IF;
	END $do$`)
	app := appIn(t, shared.DSNOf("narrow", "narrow-password", "postgres"), "room")
	app.decidesNothing(t, "without room", postgres.ErrBusy)
}

// decidesNothing expects an error of each method.
func (a app) decidesNothing(t *testing.T, when string, want error) {
	t.Helper()
	record := a.record(t, 2)
	state, err := a.logins.Observe(t.Context(), a.mark, record.Username, record.Password)
	_, converged := a.tenant.Converge(t.Context(), a.mark)
	_, limited := a.logins.Converge(t.Context(), a.mark, record.Username)
	is, superseded := a.logins.Superseded(t.Context(), a.mark, record, []string{a.names.Login(1)})
	if state != "" || is.Accepted {
		t.Errorf("%s the login is %q, and superseded: %t", when, state, is.Accepted)
	}
	for what, err := range map[string]error{
		"observe": err, "converge the tenant": converged, "converge": limited, "superseded": superseded,
		"create":            a.logins.Create(t.Context(), a.mark, record),
		"set":               a.logins.Set(t.Context(), a.mark, credential.Assignment{Record: record}),
		"retire":            a.logins.Retire(t.Context(), a.mark, record, nil),
		"delete":            a.logins.Delete(t.Context(), a.mark, record.Username),
		"delete the tenant": a.tenant.Delete(t.Context(), a.mark),
		"check":             a.server.Check(t.Context()),
	} {
		if !errors.Is(err, want) || strings.Contains(err.Error(), record.Password.Reveal()) {
			t.Errorf("%s: %s: %v, want %v", when, what, err, want)
		}
	}
}

// A missing right of the administrator is not absence, is not retried forever, and its error contains the remedy.
func TestAnAdminWithoutRightsIsTold(t *testing.T) {
	t.Parallel()
	super(t, "postgres", `DO $do$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weak') THEN CREATE ROLE weak LOGIN PASSWORD 'weak-password'; END IF;
	END $do$`)
	for dsn, want := range map[string]string{
		shared.DSNOf("weak", "weak-password", "postgres"):  "ALTER ROLE \"weak\" CREATEROLE CREATEDB",
		shared.DSNOf("weak", "other-password", "postgres"): "correct the user and the password in the DSN",
	} {
		app := appIn(t, dsn, "rights")
		err := app.server.Check(t.Context())
		if !errors.Is(err, postgres.ErrRights) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-password") {
			t.Errorf("check: %v, want %s", err, want)
		}
		if _, err := app.tenant.Converge(t.Context(), app.mark); !errors.Is(err, postgres.ErrRights) {
			t.Errorf("converge: %v", err)
		}
		if _, err := app.logins.Observe(t.Context(), app.mark, "missing", credential.Password{}); strings.Contains(dsn, "other") && !errors.Is(err, postgres.ErrRights) {
			t.Errorf("observe: %v", err)
		}
	}
	if err := newApp(t, "rights").server.Check(t.Context()); err != nil {
		t.Errorf("the admin that tests run as: %v", err)
	}
}

// The error of an invalid DSN does not contain its password.
func TestADSNThatIsNotUnderstoodIsNotTold(t *testing.T) {
	t.Parallel()
	var got []bool
	for _, dsn := range []string{
		"postgres://admin:hush%zz@localhost/postgres", "postgres://admin:hush@localhost:port/postgres", "host=localhost password='hush user=x",
		"postgres://admin:hush@localhost/postgres?sslmode=hush", "postgres://admin:hu/sh@localhost/postgres",
	} {
		_, err := postgres.Open(postgres.Config{DSN: credential.NewPassword(dsn)})
		got = append(got, err != nil && !strings.Contains(err.Error(), "hu"))
	}
	if diff := cmp.Diff([]bool{true, true, true, true, true}, got); diff != "" {
		t.Error(diff)
	}
}
