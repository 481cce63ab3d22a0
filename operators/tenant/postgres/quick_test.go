package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// quick is a quick check of an app with a current credential.
func (a app) quick(current, prove credential.Record) postgres.QuickCheck {
	expected := postgres.Expected{Logins: a.logins, Owner: a.mark, Current: credential.GivenOf(current)}
	for _, login := range a.names.Logins() {
		if login != current.Username {
			expected.Others = append(expected.Others, login)
		}
	}
	return postgres.QuickCheck{Tenant: a.tenant, Owner: a.mark, Apps: []postgres.Expected{expected}, Prove: prove}
}

// finds reports whether a quick check finds a difference.
func finds(t *testing.T, check postgres.QuickCheck) bool {
	t.Helper()
	difference, err := check.Difference(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return difference != ""
}

// A quick check finds all that Converge or credential.User would do something about, and writes nothing. What takes a connection of its own it finds
// in its turn.
func TestAQuickCheckFindsEachDrift(t *testing.T) {
	t.Parallel()
	app := newApp(t, "quick")
	app.converge(t)
	records := app.rotated(t, app.user(&memory{}))
	current := records[len(records)-1]
	if _, err := app.logins.Converge(t.Context(), app.mark, app.names.Logins()[0], app.names.Logins()[1]); err != nil {
		t.Fatal(err)
	}
	const used, other, database = "t_quick_web_a", "t_quick_web_b", "t_quick"
	always, proving, inside := "always", "when it tries the password", "when it looks inside"
	for name, drift := range map[string]struct{ database, do, undo, found string }{
		"another password":        {"postgres", "ALTER ROLE " + used + " PASSWORD 'by-hand'", "", proving},
		"an expired password":     {"postgres", "ALTER ROLE " + used + " VALID UNTIL '2000-01-01'", "ALTER ROLE " + used + " VALID UNTIL 'infinity'", proving},
		"a login that is closed":  {"postgres", "ALTER ROLE " + used + " NOLOGIN", "ALTER ROLE " + used + " LOGIN", always},
		"a login that is open":    {"postgres", "ALTER ROLE " + other + " LOGIN", "ALTER ROLE " + other + " NOLOGIN", always},
		"another limit":           {"postgres", "ALTER ROLE " + used + " CONNECTION LIMIT 3", "ALTER ROLE " + used + " CONNECTION LIMIT -1", always},
		"a limit of the other":    {"postgres", "ALTER ROLE " + other + " CONNECTION LIMIT 3", "ALTER ROLE " + other + " CONNECTION LIMIT -1", always},
		"a setting":               {"postgres", "ALTER ROLE " + used + " SET statement_timeout = 7", "ALTER ROLE " + used + " RESET statement_timeout", always},
		"another role to work as": {"postgres", "ALTER ROLE " + used + " RESET role", "ALTER ROLE " + used + " SET role = t_quick", always},
		"another access":          {"postgres", "GRANT t_quick_ro TO " + used, "REVOKE t_quick_ro FROM " + used, always},
		"the right to make roles": {"postgres", "ALTER ROLE " + used + " CREATEROLE", "ALTER ROLE " + used + " NOCREATEROLE", always},
		"a closed database": {
			"postgres", "ALTER DATABASE " + database + " CONNECTION LIMIT 5", "ALTER DATABASE " + database + " CONNECTION LIMIT -1", always,
		},
		"an open database": {"postgres", "GRANT CONNECT ON DATABASE " + database + " TO PUBLIC", "REVOKE ALL ON DATABASE " + database + " FROM PUBLIC", always},
		"a lost mark": {
			"postgres", "COMMENT ON ROLE t_quick_rw IS NULL", "COMMENT ON ROLE t_quick_rw IS '" + app.mark.String() + "'", always,
		},
		"a store that is behind": {
			"postgres", "COMMENT ON ROLE " + used + " IS '" + app.mark.String() + " generation=9 created=2040-01-01T00:00:00Z'",
			fmt.Sprintf("COMMENT ON ROLE "+used+" IS '%s generation=%d created=%s'", app.mark, current.Generation, current.Created.Format(time.RFC3339)), always,
		},
		"rights in the database": {database, "REVOKE USAGE ON SCHEMA public FROM t_quick_ro", "GRANT USAGE ON SCHEMA public TO t_quick_ro", inside},
	} {
		check := map[string]bool{proving: finds(t, app.quick(current, current)), inside: finds(t, app.quick(current, credential.Record{}))}
		if check[proving] || check[inside] {
			t.Fatalf("before %s a difference is found: %v", name, check)
		}
		super(t, drift.database, drift.do)
		before := len(said("quick"))
		check = map[string]bool{proving: finds(t, app.quick(current, current)), inside: finds(t, app.quick(current, credential.Record{}))}
		want := map[string]bool{proving: drift.found != inside, inside: drift.found != proving}
		if check[proving] != want[proving] || check[inside] != want[inside] {
			t.Errorf("%s is found: %v, want %v", name, check, want)
		}
		if wrote := writes(said("quick")[before:]); len(wrote) > 0 {
			t.Errorf("%s: the checks write %q", name, wrote)
		}
		if drift.undo != "" {
			super(t, drift.database, drift.undo)
			continue
		}
		set := credential.Assignment{Record: current}
		if err := app.logins.Set(t.Context(), app.mark, set); err != nil {
			t.Fatal(err)
		}
	}
}

// A quick check costs two statements at most, and no more where a tenant has several apps.
func TestAQuickCheckCostsLittle(t *testing.T) {
	t.Parallel()
	app := newApp(t, "quickcost")
	app.converge(t)
	records := app.rotated(t, app.user(&memory{}))
	current := records[len(records)-1]
	for what, row := range map[string]struct {
		prove      credential.Record
		statements int
	}{"trying a password": {current, 1}, "looking inside": {credential.Record{}, 2}} {
		before := len(said("quickcost"))
		if finds(t, app.quick(current, row.prove)) {
			t.Fatalf("%s: a difference is found", what)
		}
		if cost := said("quickcost")[before:]; len(cost) != row.statements {
			t.Errorf("%s takes %d statements, want %d: %q", what, len(cost), row.statements, cost)
		}
	}
}
