package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// since18 reports whether the server is of version 18 or later.
func since18(t *testing.T) bool {
	t.Helper()
	return ask[bool](t, "SELECT current_setting('server_version_num')::int >= 180000")
}

// obstacles are ways in which an app holds up logins, or makes its password one that cannot be proved. Each gets a session of the login.
func obstacles() map[string]func(*testing.T, app, credential.Record, *pgx.Conn) {
	verifier := func(iterations, salt string) func(*testing.T, app, credential.Record, *pgx.Conn) {
		return func(t *testing.T, _ app, _ credential.Record, session *pgx.Conn) {
			t.Helper()
			if len(salt) > 400 && since18(t) {
				t.Skip("since version 18, the server refuses a verifier of more than 512 bytes")
			}
			key := strings.Repeat("A", 43) + "="
			execute(t, session, "SET ROLE NONE", "ALTER ROLE CURRENT_USER PASSWORD 'SCRAM-SHA-256$"+iterations+":"+salt+"$"+key+":"+key+"'")
		}
	}
	return map[string]func(*testing.T, app, credential.Record, *pgx.Conn){
		"many-iterations": verifier("10000001", "MDEyMzQ1Njc4OWFiY2RlZg=="),
		"long-salt":       verifier("4096", strings.Repeat("A", 240_000)),
		"md5": func(t *testing.T, _ app, record credential.Record, session *pgx.Conn) {
			t.Helper()
			authenticate(t, record.Username, "md5")
			execute(t, session, "SET ROLE NONE", "SET password_encryption = md5", "ALTER ROLE CURRENT_USER PASSWORD '"+record.Password.Reveal()+"'")
		},
		"large-setting": func(t *testing.T, _ app, _ credential.Record, session *pgx.Conn) {
			t.Helper()
			execute(t, session, "SET ROLE NONE", "SELECT set_config('search_path', repeat('x', 100000000), false)", "ALTER ROLE CURRENT_USER SET search_path FROM CURRENT")
		},
		"locked-catalog": func(t *testing.T, of app, record credential.Record, session *pgx.Conn) {
			t.Helper()
			execute(t, session, "BEGIN", "SELECT count(*) FROM pg_class")
			executeInBackground(t, connect(t, of.tenant.Database, record), "VACUUM FULL pg_class")
			for ask[int](t, "SELECT count(*) FROM pg_stat_activity WHERE query = 'VACUUM FULL pg_class' AND wait_event_type = 'Lock' AND datname = $1", of.tenant.Database) == 0 {
				<-time.After(20 * time.Millisecond)
			}
		},
	}
}

// An app that holds up logins to its database, or whose password cannot be proved, cannot hold up its own revocation: the operator first sets the new
// password, and then proves it. The sessions of the app end.
func TestAnAppThatHoldsUpLoginsCannotHoldUpItsRevocation(t *testing.T) {
	t.Parallel()
	for name, obstruct := range obstacles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			revokeDespite(t, "held-"+name, obstruct)
		})
	}
}

func revokeDespite(t *testing.T, tenant string, obstruct func(*testing.T, app, credential.Record, *pgx.Conn)) {
	t.Helper()
	app := newApp(t, tenant)
	app.converge(t)
	app.logins.Terminate = true
	store := &memory{}
	user := credential.User{Once: credential.Once{
		Store: store, Name: "web", Owner: app.mark, Username: app.names.Login(1), Alternate: app.names.Login(2),
	}, System: app.logins}
	first, err := user.Converge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	obstruct(t, app, first.Record, connect(t, app.tenant.Database, first.Record))
	user.Request, user.InPlace, user.Generation = "leaked", true, 1
	begun := time.Now()
	if err := user.Revoke(t.Context()); err != nil || time.Since(begun) > revokedWithin {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	t.Logf("revoked after %s", time.Since(begun))
	var refused *pgconn.PgError
	if _, err := pgx.Connect(t.Context(), shared.DSNOf(first.Username, first.Password.Reveal(), "postgres")); !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("the old password: %v", err)
	}
	noSessionIsLeft(t, "usename", first.Username)
	second, err := user.Converge(t.Context())
	if err != nil || second.Generation != 2 || store.published != 2 {
		t.Errorf("readers get generation %d, %v", store.published, err)
	}
}

// A login that cannot be dropped, because it owns a table, keeps no other login of the app open.
func TestALoginThatCannotBeDroppedKeepsNoOtherOpen(t *testing.T) {
	t.Parallel()
	app, first := madeApp(t, "bothshut")
	second := app.record(t, 2)
	if err := app.logins.Create(t.Context(), app.mark, second); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, app.tenant.Database, first), "GRANT CREATE ON SCHEMA public TO "+first.Username, "SET ROLE NONE", "CREATE TABLE notes ()")
	connect(t, app.tenant.Database, second)
	if err := app.logins.Delete(t.Context(), app.mark, first.Username, second.Username); !errors.Is(err, postgres.ErrDependent) {
		t.Errorf("got %v", err)
	}
	app.expect(t, "after the deletion", map[credential.Record]credential.State{first: credential.Retired, second: credential.Retired})
	noSessionIsLeft(t, "usename", second.Username)
}

// An app that has become the owner of its tenant's database, and holds the lock on it, leaves the rights incomplete. The logins do not wait for it.
func TestADatabaseThatAnAppHoldsIsIncomplete(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "held")
	execute(t, connect(t, app.tenant.Database, record), "SET ROLE NONE", "REASSIGN OWNED BY t_held TO "+record.Username, "BEGIN",
		"ALTER DATABASE t_held CONNECTION LIMIT 50")
	begun := time.Now()
	if _, err := app.tenant.Converge(t.Context(), app.mark); !errors.Is(err, postgres.ErrIncomplete) || !errors.Is(err, postgres.ErrLocked) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > revokedWithin {
		t.Errorf("it took %s", took)
	}
}
