package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// Two logins that work as one role, the new one first; the old one goes on until it is taken out of use,
// then new logins are refused, and sessions end if that was asked for. What one has made the other changes, and the old one can be dropped.
func TestRotationGoesFromOneLoginToTheOther(t *testing.T) {
	t.Parallel()
	app, first := madeApp(t, "rotation")
	app.logins.Terminate = true
	second := app.record(t, 2)
	old := connect(t, app.tenant.Database, first)
	execute(t, old, "CREATE TABLE notes (body text)", "INSERT INTO notes VALUES ('kept')")
	others := []string{first.Username}
	if err := app.logins.Create(t.Context(), app.mark, second); err != nil {
		t.Fatal(err)
	}
	app.expect(t, "in the overlap", map[credential.Record]credential.State{first: credential.Accepted, second: credential.Accepted})
	if !app.superseded(t, second, first.Username) {
		t.Error("it is not told that something is superseded")
	}
	if err := app.logins.Retire(t.Context(), app.mark, second, others); err != nil {
		t.Fatal(err)
	}
	if app.superseded(t, second, first.Username) {
		t.Error("Superseded is true")
	}
	app.expect(t, "after the overlap", map[credential.Record]credential.State{first: credential.Retired, second: credential.Accepted})
	if err := old.Ping(t.Context()); err == nil {
		t.Error("a session of the old login was not ended")
	}
	execute(t, connect(t, app.tenant.Database, second), "ALTER TABLE notes ADD COLUMN more text", "DROP TABLE notes")
	third := app.record(t, 3)
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: third, Keep: true}); err != nil {
		t.Fatal(err)
	}
	app.expect(t, "after the next rotation", map[credential.Record]credential.State{first: credential.Refused, third: credential.Accepted})
	before := len(said("rotation"))
	if !app.superseded(t, third, second.Username) {
		t.Error("it is not told that something is superseded")
	}
	if wrote := writes(said("rotation")[before:]); len(wrote) > 0 {
		t.Errorf("to look whether something is superseded it said %q", wrote)
	}
}

// expect observes what the server has for records.
func (a app) expect(t *testing.T, when string, states map[credential.Record]credential.State) {
	t.Helper()
	for record, want := range states {
		if got := a.observe(t, record); got != want {
			t.Errorf("%s generation %d is %s, want %s", when, record.Generation, got, want)
		}
	}
}

// superseded reports whether another credential than the current one is accepted.
func (a app) superseded(t *testing.T, current credential.Record, other string) bool {
	t.Helper()
	is, err := a.logins.Superseded(t.Context(), a.mark, current, []string{other})
	if err != nil {
		t.Fatal(err)
	}
	return is.Accepted
}

// A session that was left open when what had taken away the right to log in was broken off is ended by the next call. The login is dropped
// without a word on the tables that it has made: they are the tenant's.
func TestSessionsThatWereForgottenAreEnded(t *testing.T) {
	t.Parallel()
	app, first := madeApp(t, "forgotten")
	second, others := app.record(t, 2), []string{first.Username}
	open := connect(t, app.tenant.Database, first)
	execute(t, open, "CREATE TABLE notes (body text)")
	if err := app.logins.Retire(t.Context(), app.mark, second, others); !errors.Is(err, credential.ErrUnproven) {
		t.Errorf("the only login is taken out of use: %v", err)
	}
	if err := app.logins.Create(t.Context(), app.mark, second); err != nil {
		t.Fatal(err)
	}
	if err := app.logins.Retire(t.Context(), app.mark, second, others); err != nil {
		t.Fatal(err)
	}
	if app.superseded(t, second, first.Username) {
		t.Error("Superseded is true")
	}
	if err := open.Ping(t.Context()); err != nil {
		t.Errorf("a session was ended without Terminate: %v", err)
	}
	app.logins.Terminate = true
	if !app.superseded(t, second, first.Username) {
		t.Error("it is not told that something is superseded")
	}
	const members = "SELECT coalesce(json_agg(m ORDER BY m::text), '[]')::text FROM pg_auth_members AS m WHERE roleid = $1::regrole"
	before := ask[string](t, members, first.Username)
	if err := app.logins.Retire(t.Context(), app.mark, second, others); err != nil {
		t.Fatal(err)
	}
	if app.superseded(t, second, first.Username) {
		t.Error("Superseded is true")
	}
	if after := ask[string](t, members, first.Username); after != before {
		t.Errorf("members of the login were %s and are %s", before, after)
	}
	if err := app.logins.Delete(t.Context(), app.mark, first.Username); err != nil {
		t.Error(err)
	}
	execute(t, connect(t, app.tenant.Database, second), "INSERT INTO notes VALUES ('kept')", "ALTER TABLE notes ADD COLUMN more text")
}

// A role that another makes at the same time is reported as 23505 on a catalog's index, not as 42710.
func TestWhoIsSlowerIsToldThatItIsThere(t *testing.T) {
	t.Parallel()
	first := newApp(t, "slower")
	const many = 8
	results := make(chan error)
	atOnce := func(do func(app) error) (failed []error) {
		for range many {
			own := newApp(t, "slower") // With connections of its own.
			go func() { results <- do(own) }()
		}
		for range many {
			if err := <-results; err != nil {
				failed = append(failed, err)
			}
		}
		return failed
	}
	if failed := atOnce(func(own app) error { _, err := own.tenant.Converge(t.Context(), own.mark); return err }); len(failed) > 0 {
		t.Errorf("tenants made at once: %v", failed)
	}
	record := first.record(t, 1)
	failed := atOnce(func(own app) error { return own.logins.Create(t.Context(), own.mark, record) })
	for _, err := range failed {
		if !errors.Is(err, credential.ErrExists) {
			t.Error(err)
		}
	}
	if len(failed) != many-1 {
		t.Errorf("%d of %d did not make the login", len(failed), many)
	}
}

// What others change at the same time ("tuple concurrently updated") is looked at and tried again.
func TestManyAtOnceChangeOneLogin(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "changes")
	const many = 8
	results := make(chan error)
	for i := range many {
		go func() {
			mine := app.logins
			mine.Limits.ConnectionLimit = 50 + i
			_, err := mine.Converge(t.Context(), app.mark, record.Username)
			results <- errors.Join(err, app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: record}))
		}()
	}
	for range many {
		if err := <-results; err != nil && !errors.Is(err, postgres.ErrUnsettled) { // They have different limits in mind, and could go on for ever.
			t.Error(err)
		}
	}
	if state := app.observe(t, record); state != credential.Accepted {
		t.Errorf("the login is %s", state)
	}
}

func execute(t *testing.T, connection *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
