package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// Only no row is absence, only 28P01 is a wrong password, and everything else is an error.
func TestWhatTheServerHasOfALogin(t *testing.T) {
	t.Parallel()
	app := newApp(t, "states")
	app.converge(t)
	record := app.record(t, 1)
	expect := func(when string, want credential.State) {
		t.Helper()
		if got := app.observe(t, record); got != want {
			t.Errorf("%s it is %s, want %s", when, got, want)
		}
	}
	role := record.Username
	expect("before it is made", credential.Absent)
	if err := app.logins.Create(t.Context(), app.mark, record); err != nil {
		t.Fatal(err)
	}
	expect("when it is made", credential.Accepted)
	if err := app.logins.Create(t.Context(), app.mark, record); !errors.Is(err, credential.ErrExists) {
		t.Errorf("made again: %v", err)
	}
	right := record.Password
	record.Password = credential.NewPassword("wrong")
	expect("with a wrong password", credential.Refused)
	record.Password = credential.Password{}
	expect("without a password", credential.Present)
	record.Password = right
	for _, fault := range []struct{ how, undo string }{ // The server finds them only after the password.
		{"ALTER ROLE " + role + " CONNECTION LIMIT 0", "ALTER ROLE " + role + " CONNECTION LIMIT -1"},
		{"ALTER DATABASE " + app.tenant.Database + " RENAME TO states_hidden", "ALTER DATABASE states_hidden RENAME TO " + app.tenant.Database},
		{"ALTER DATABASE " + app.tenant.Database + " ALLOW_CONNECTIONS false", "ALTER DATABASE " + app.tenant.Database + " ALLOW_CONNECTIONS true"},
		{"REVOKE " + app.tenant.Owner + " FROM " + role + " GRANTED BY admin", "GRANT " + app.tenant.Owner + " TO " + role},
	} {
		super(t, "postgres", fault.how)
		expect(fault.how, credential.Accepted)
		record.Password = credential.NewPassword("wrong")
		expect(fault.how+", with a wrong password", credential.Refused)
		record.Password = right
		super(t, "postgres", fault.undo)
	}
	super(t, "postgres", "ALTER ROLE "+role+" NOLOGIN")
	expect("without the right to log in", credential.Retired)
	super(t, "postgres", "COMMENT ON ROLE "+role+" IS 'tenants.example.com@other//states'")
	expect("with another's mark", credential.Foreign)
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: record}); !errors.Is(err, credential.ErrConflict) {
		t.Errorf("another's role is set: %v", err)
	}
	super(t, "postgres", "COMMENT ON ROLE "+role+" IS NULL")
	expect("without a mark", credential.Unmarked)
	record.Password = credential.NewPassword("another-0123456789")
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: record}); err != nil {
		t.Fatal(err)
	}
	expect("when it is set", credential.Accepted)
	super(t, "postgres", "ALTER ROLE "+role+" VALID UNTIL '2000-01-01'")
	expect("when the password has expired", credential.Refused)
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: record}); err != nil {
		t.Fatal(err)
	}
	expect("when it is set again", credential.Accepted)
}

// A server that asks for no password has proven none.
func TestAServerThatTrustsProvesNothing(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "trust")
	authenticate(t, record.Username, "trust")
	eventually(t, "the server trusts", func() bool {
		connection, err := pgx.Connect(t.Context(), shared.DSNOf(record.Username, "wrong", app.tenant.Database))
		if err != nil {
			return false
		}
		return connection.Close(t.Context()) == nil
	})
	if state, err := app.logins.Observe(t.Context(), app.mark, record.Username, record.Password); err == nil {
		t.Errorf("a password that was not asked for is %s", state)
	}
}

var authentication sync.Mutex //nolint:gochecknoglobals // Of the file of the server that all tests share.

// authenticate lets a role log in with a method of pg_hba.conf.
func authenticate(t *testing.T, username, method string) {
	t.Helper()
	authentication.Lock()
	defer authentication.Unlock()
	file := filepath.Join(shared.Dir, "data", "pg_hba.conf")
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The file stays whose it is.
	if err := os.WriteFile(file, append([]byte("host all "+username+" 127.0.0.1/32 "+method+"\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	super(t, "postgres", "SELECT pg_reload_conf()")
}

// eventually polls for at most ten seconds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to that %s", what)
		}
	}
}

// Plan and access are reached by level, and no password is touched. Steady state writes nothing.
func TestLimitsAndAccessConverge(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "plans")
	verifier := ask[string](t, "SELECT rolpassword FROM pg_authid WHERE rolname = $1", record.Username)
	for _, step := range []struct {
		logins postgres.Logins
		want   string
	}{
		{postgres.Logins{}, "-1 {role=t_plans} {t_plans}"},
		{
			postgres.Logins{Access: postgres.ReadWrite, Limits: postgres.Limits{ConnectionLimit: 5, StatementTimeout: 30 * time.Second}},
			"5 {role=t_plans_rw,statement_timeout=30000} {t_plans_rw}",
		},
		{
			postgres.Logins{Access: postgres.ReadOnly, Limits: postgres.Limits{ConnectionLimit: 7, IdleInTransactionTimeout: time.Microsecond}},
			"7 {role=t_plans_ro,idle_in_transaction_session_timeout=1} {t_plans_ro}",
		},
		{postgres.Logins{Access: postgres.AsOwner}, "-1 {role=t_plans} {t_plans}"},
	} {
		step.logins.Tenant = app.tenant
		if _, err := step.logins.Converge(t.Context(), app.mark, app.names.Login(1), app.names.Login(2)); err != nil {
			t.Fatal(err)
		}
		got := ask[string](t, `SELECT rolconnlimit || ' ' || rolconfig::text || ' ' || ARRAY(
			SELECT pg_get_userbyid(roleid)::text FROM pg_auth_members WHERE member = pg_roles.oid)::text FROM pg_roles WHERE rolname = $1`, record.Username)
		if got != step.want {
			t.Errorf("%+v: the login has %s, want %s", step.logins.Limits, got, step.want)
		}
		before := len(said("plans"))
		if wrote, err := step.logins.Converge(t.Context(), app.mark, app.names.Login(1), app.names.Login(2)); err != nil || wrote {
			t.Errorf("steady limits are written: %t, %v", wrote, err)
		}
		if again := said("plans")[before:]; len(again) != 1 || len(writes(again)) > 0 {
			t.Errorf("in steady state it said %q", again)
		}
	}
	super(t, "postgres", "ALTER ROLE "+record.Username+" CREATEROLE CREATEDB", "ALTER ROLE "+record.Username+" SET work_mem = '8MB'")
	if wrote, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil || !wrote {
		t.Errorf("an additional right stays: %t, %v", wrote, err)
	}
	if got := ask[string](t, "SELECT rolcreaterole::text || rolcreatedb || rolconfig::text FROM pg_roles WHERE rolname = $1", record.Username); got != "falsefalse{role=t_plans,work_mem=8MB}" {
		t.Errorf("the login has %s", got)
	}
	if now := ask[string](t, "SELECT rolpassword FROM pg_authid WHERE rolname = $1", record.Username); now != verifier {
		t.Error("the password was touched")
	}
}

// What a login cannot have is said, and not taken for something else.
func TestAccessAndLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "nonsense")
	for _, wrong := range []postgres.Logins{{Access: "readonly"}, {Limits: postgres.Limits{ConnectionLimit: -1}}} {
		wrong.Tenant = app.tenant
		_, err := wrong.Converge(t.Context(), app.mark, record.Username)
		if err == nil || wrong.Create(t.Context(), app.mark, app.record(t, 2)) == nil {
			t.Errorf("%q, %+v: nothing is wrong with it", wrong.Access, wrong.Limits)
		}
	}
}

// Limits hold; and a login that uses all its sessions is there, and nothing is wrong with its password.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "limits")
	app.logins.Limits = postgres.Limits{ConnectionLimit: 1, StatementTimeout: 50 * time.Millisecond}
	if _, err := app.logins.Converge(t.Context(), app.mark, record.Username); err != nil {
		t.Fatal(err)
	}
	connection := connect(t, app.tenant.Database, record)
	if _, err := connection.Exec(t.Context(), "SELECT pg_sleep(60)"); err == nil {
		t.Error("a long statement is not ended")
	}
	if state := app.observe(t, record); state != credential.Accepted {
		t.Errorf("with no session left to try the password it is %s", state)
	}
}

// 16 operators at once store one password, and make one role that accepts it.
func TestManyAtOnceMakeOneLogin(t *testing.T) {
	t.Parallel()
	const many = 16
	store := &memory{}
	results := make(chan credential.Record, many)
	first := newApp(t, "crowd")
	for range many {
		app := newApp(t, "crowd") // A process of its own, with connections of its own.
		go func() {
			record, err := app.provision(t.Context(), store)
			if err != nil {
				t.Error(err)
			}
			results <- record
		}()
	}
	var got []credential.Record
	for range many {
		got = append(got, <-results)
	}
	if got = slices.Compact(got); len(got) != 1 || first.observe(t, got[0]) != credential.Accepted {
		t.Errorf("%d credentials, the first is %s", len(got), first.observe(t, got[0]))
	}
	if roles := ask[int](t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 't\\_crowd%'"); roles != 4 {
		t.Errorf("there are %d roles, want the owner, two groups and one login", roles)
	}
}

// provision does what an operator does about an app, again after each error that is not for a person, for a minute.
func (a app) provision(ctx context.Context, store credential.Store) (credential.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	logins := a.names.Logins()
	user := credential.User{
		Once:   credential.Once{Store: store, Name: "db", Owner: a.mark, Username: logins[0], Alternate: logins[1]},
		System: a.logins,
	}
	for {
		_, err := a.tenant.Converge(ctx, a.mark)
		if err == nil {
			var outcome credential.Outcome
			if outcome, err = user.Converge(ctx); err == nil {
				return outcome.Record, nil
			}
		}
		// Missing is what one sees who has looked into the store before another stored, and into the database after.
		if credential.Blocked(err) && !errors.Is(err, credential.ErrMissing) || ctx.Err() != nil {
			return credential.Record{}, err
		}
	}
}

// Identifiers are quoted, whatever a role is called. names refuses such before.
func TestNamesAreNotExecuted(t *testing.T) {
	t.Parallel()
	app := newApp(t, "injection")
	evil := `x"; DROP ROLE admin; --`
	app.tenant.Database, app.tenant.Owner, app.tenant.ReadWrite, app.tenant.ReadOnly = evil, evil, evil+"rw", evil+"ro"
	app.tenant.DropDatabase = true
	app.mark.Name = `'; DROP ROLE admin; --\`
	app.converge(t)
	app.logins.Tenant, app.logins.DropOwned = app.tenant, true
	record := app.record(t, 1)
	record.Username = evil + "'a"
	if err := app.logins.Create(t.Context(), app.mark, record); err != nil {
		t.Fatal(err)
	}
	record.Password = credential.NewPassword(`'; DROP ROLE admin; --`)
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: record}); err != nil {
		t.Fatal(err)
	}
	if state := app.observe(t, record); state != credential.Accepted {
		t.Errorf("the login is %s", state)
	}
	want := []string{evil, evil + "'a", evil + "ro", evil + "rw"}
	got := ask[[]string](t, `SELECT array_agg(rolname::text ORDER BY rolname COLLATE "C") FROM pg_roles WHERE rolname LIKE 'x%' OR rolname = 'missing'`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	connect(t, evil, record)
	if err := app.logins.Delete(t.Context(), app.mark, record.Username); err != nil {
		t.Error(err)
	}
	if err := app.tenant.Delete(t.Context(), app.mark); err != nil {
		t.Error(err)
	}
	if !ask[bool](t, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'admin')") {
		t.Error("a name was executed")
	}
}

// No statement holds a password, with each of them logged.
func TestTheLogHoldsNoPassword(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "secrecy")
	next := app.record(t, 1)
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: next}); err != nil {
		t.Fatal(err)
	}
	app.observe(t, record)
	logged := shared.Log()
	if !strings.Contains(logged, "ALTER ROLE \"t_secrecy_web_a\" LOGIN PASSWORD 'SCRAM-SHA-256$4096:") {
		t.Error("the log does not show what was executed")
	}
	for _, one := range []credential.Record{record, next} {
		if strings.Contains(logged, one.Password.Reveal()) {
			t.Error("the log holds a password")
		}
	}
}
