package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
)

// tenant-and-database.md §2, Rotation, PostgreSQL: two logins that work as one role, the new one first; the old one goes on until it is taken out of use,
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
	if sessions, err := app.logins.Sessions(t.Context(), first.Username); err != nil || sessions != 1 {
		t.Errorf("the old login has %d sessions, %v", sessions, err)
	}
	if !app.superseded(t, second, first.Username) {
		t.Error("it is not told that something is superseded")
	}
	if err := app.logins.Retire(t.Context(), app.mark, second, others); err != nil {
		t.Fatal(err)
	}
	if app.superseded(t, second, first.Username) {
		t.Error("it is told that something is superseded")
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

// superseded tells whether something is accepted beside the current credential.
func (a app) superseded(t *testing.T, current credential.Record, other string) bool {
	t.Helper()
	is, err := a.logins.Superseded(t.Context(), a.mark, current, []string{other})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// A session that was left open when the server broke off what had taken away the right to log in is ended by the next call.
func TestSessionsThatWereForgottenAreEnded(t *testing.T) {
	t.Parallel()
	app, first := madeApp(t, "forgotten")
	second, others := app.record(t, 2), []string{first.Username}
	open := connect(t, app.tenant.Database, first)
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
		t.Error("it is told that something is superseded")
	}
	if err := open.Ping(t.Context()); err != nil {
		t.Errorf("a session is ended that nobody asked to end: %v", err)
	}
	app.logins.Terminate = true
	if !app.superseded(t, second, first.Username) {
		t.Error("it is not told that something is superseded")
	}
	if err := app.logins.Retire(t.Context(), app.mark, second, others); err != nil {
		t.Fatal(err)
	}
	if app.superseded(t, second, first.Username) {
		t.Error("it is told that something is superseded")
	}
	if got := ask[[]string](t, "SELECT coalesce(array_agg(pg_get_userbyid(member)::text), '{}') FROM pg_auth_members WHERE roleid = $1::regrole", first.Username); len(got) > 0 {
		t.Errorf("%q stay members of the login", got)
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
