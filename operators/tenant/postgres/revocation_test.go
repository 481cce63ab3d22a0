package postgres_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
)

// A revocation is complete within this time although the tenant holds the lock of the role all the time.
const revokedWithin = 10 * time.Second

// revocations are the ways in which a login of an app is taken out of use.
func revocations() map[string]func(context.Context, app, credential.Record) error {
	return map[string]func(context.Context, app, credential.Record) error{
		"in-place": func(ctx context.Context, of app, next credential.Record) error {
			of.logins.Terminate = true
			next.Username = of.names.Login(1)
			return of.logins.Set(ctx, of.mark, credential.Assignment{Record: next})
		},
		"retire": func(ctx context.Context, of app, next credential.Record) error {
			return of.logins.Retire(ctx, of.mark, next, []string{of.names.Login(1)})
		},
		"retire-terminate": func(ctx context.Context, of app, next credential.Record) error {
			of.logins.Terminate = true
			return of.logins.Retire(ctx, of.mark, next, []string{of.names.Login(1)})
		},
		"delete": func(ctx context.Context, of app, _ credential.Record) error {
			return of.logins.Delete(ctx, of.mark, of.names.Login(1))
		},
	}
}

// trials is how often each way is tried: EINMAL_REVOCATIONS says it for a run by hand.
func trials(t *testing.T) int {
	t.Helper()
	given, is := os.LookupEnv("EINMAL_REVOCATIONS")
	if !is {
		return 2
	}
	number, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("EINMAL_REVOCATIONS: %v", err)
	}
	return number
}

// A tenant that changes its own password and does not commit holds the lock that a revocation needs. The revocation ends those sessions,
// and does not wait for them, although the tenant comes back with all the connections that it may have and locks again.
func TestATenantCannotHoldUpARevocation(t *testing.T) {
	t.Parallel()
	for name, revoke := range revocations() {
		for how, attack := range attacks() {
			t.Run(name+"-"+how, func(t *testing.T) {
				var took []time.Duration
				for i := range trials(t) {
					t.Run(strconv.Itoa(i+1), func(t *testing.T) { // With a tenant of its own, which is dropped at the end.
						took = append(took, revokedUnderAttack(t, "grip-"+name+"-"+how, name, revoke, attack))
					})
				}
				slices.Sort(took)
				t.Logf("%d trials: median %s, longest %s", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
			})
		}
	}
}

// attack is what a session of the tenant does to keep its password, and how its last statement begins.
type attack struct {
	do   func(ctx context.Context, session *pgx.Conn, leaked credential.Record)
	last string
}

func attacks() map[string]attack {
	patient := func(ctx context.Context, session *pgx.Conn) {
		_, _ = session.Exec(ctx, "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; SET lock_timeout = 0; SET ROLE NONE")
	}
	own := func(of credential.Record) string {
		return fmt.Sprintf("ALTER ROLE CURRENT_USER PASSWORD '%s'", of.Password.Reveal())
	}
	return map[string]attack{
		"hold": {func(ctx context.Context, session *pgx.Conn, leaked credential.Record) {
			patient(ctx, session)
			for _, statement := range []string{"BEGIN", own(leaked), "ALTER ROLE CURRENT_USER SET work_mem = '1MB'", "SELECT pg_sleep(1000)"} {
				_, _ = session.Exec(ctx, statement)
			}
		}, "SELECT pg_sleep"},
		"repeat": {func(ctx context.Context, session *pgx.Conn, leaked credential.Record) {
			patient(ctx, session)
			for ctx.Err() == nil && !session.IsClosed() {
				_, _ = session.Exec(ctx, own(leaked))
			}
		}, "ALTER"},
	}
}

// revokedUnderAttack tries a way once, and returns how long it took.
func revokedUnderAttack(t *testing.T, tenant, way string, revoke func(context.Context, app, credential.Record) error,
	attack attack,
) time.Duration {
	t.Helper()
	const sessions = 5 // All that it may have.
	app, leaked := madeApp(t, tenant)
	app.logins.Limits.ConnectionLimit = sessions
	if _, err := app.logins.Converge(t.Context(), app.mark, leaked.Username); err != nil {
		t.Fatal(err)
	}
	next := app.record(t, 2)
	if err := app.logins.Create(t.Context(), app.mark, next); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	for range sessions {
		attackers.Go(func() {
			for ctx.Err() == nil {
				session, err := pgx.Connect(ctx, shared.DSNOf(leaked.Username, leaked.Password.Reveal(), app.tenant.Database))
				if err == nil {
					attack.do(ctx, session, leaked)
					_ = session.Close(ctx)
				}
			}
		})
	}
	eventually(t, "the tenant attacks with all its sessions", func() bool {
		return ask[bool](t, `SELECT count(*) >= $2 AND bool_or(query ^@ $3) FROM pg_stat_activity
			WHERE usename = $1 AND (query ^@ 'ALTER' OR query ^@ $3) AND state = 'active'`, leaked.Username, sessions-1, attack.last)
	})
	begun := time.Now()
	err := revoke(ctx, app, next)
	took := time.Since(begun)
	if err != nil || took > revokedWithin {
		t.Errorf("after %s: %v", took, err)
	}
	app.revoked(t, way, leaked, next)
	return took
}

// revoked expects that a password that leaked is not accepted any more, and that no session is left that it has opened, but for a way that leaves
// them.
func (a app) revoked(t *testing.T, way string, leaked, next credential.Record) {
	t.Helper()
	wants := map[string]credential.State{
		"in-place": credential.Refused, "retire": credential.Retired, "retire-terminate": credential.Retired, "delete": credential.Absent,
	}
	if got := a.observe(t, leaked); got != wants[way] {
		t.Errorf("the password that leaked is %s, want %s", got, wants[way])
	}
	next.Username = a.names.Login(2)
	if way == "in-place" {
		next.Username = a.names.Login(1)
	}
	if got := a.observe(t, next); got != credential.Accepted {
		t.Errorf("the next password is %s", got)
	}
	if way != "retire" {
		noSessionIsLeft(t, "datname", a.tenant.Database) // A role that is dropped has no name.
	}
}

// noSessionIsLeft expects that no session is left whose column has a value. The connections of the test itself are closed, but PostgreSQL ends
// their sessions a moment later.
func noSessionIsLeft(t *testing.T, column, value string) {
	t.Helper()
	eventually(t, "no session is left", func() bool {
		return ask[int](t, "SELECT count(*) FROM pg_stat_activity WHERE "+column+" = $1", value) == 0
	})
}

// A process can crash during a revocation, while the login is closed. The next process completes it and opens the login with the new password.
func TestARevocationThatWasBrokenOffIsFinished(t *testing.T) {
	t.Parallel()
	app, leaked := madeApp(t, "broken-off")
	connect(t, app.tenant.Database, leaked)
	next := app.record(t, 1)
	way, dsn := newWire(t, 1)
	dying := appIn(t, dsn, "broken-off")
	dying.logins.Terminate, app.logins.Terminate = true, true
	if err := dying.logins.Set(t.Context(), app.mark, credential.Assignment{Record: next}); err == nil || !way.wasCut() {
		t.Fatalf("it was not broken off: %v", err)
	}
	app.expect(t, "when it was broken off", map[credential.Record]credential.State{leaked: credential.Retired, next: credential.Retired})
	if err := app.logins.Set(t.Context(), app.mark, credential.Assignment{Record: next}); err != nil {
		t.Fatal(err)
	}
	app.revoked(t, "in-place", leaked, next)
}
