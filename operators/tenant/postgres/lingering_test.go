package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// compute starts a session that changes its own password to a verifier whose check takes many seconds, in which PostgreSQL does not look whether
// the session has to end.
func compute(t *testing.T, of app, leaked credential.Record) (ended <-chan error) {
	t.Helper()
	if ask[int](t, "SELECT current_setting('server_version_num')::int") >= 160000 {
		t.Skip("since version 16, a session can be ended while it computes a verifier")
	}
	session, end := connect(t, of.tenant.Database, leaked), make(chan error, 1)
	key := strings.Repeat("A", 43) + "="
	execute(t, session, "SET ROLE NONE")
	go func() {
		_, err := session.Exec(context.WithoutCancel(t.Context()), "ALTER ROLE CURRENT_USER PASSWORD 'SCRAM-SHA-256$40000000:MDEyMzQ1Njc4OWFiY2RlZg==$"+key+":"+key+"'")
		end <- err
	}()
	eventually(t, "the session computes", func() bool {
		return ask[int](t, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND state = 'active' AND query ^@ 'ALTER ROLE'", leaked.Username) > 0
	})
	return end
}

// A session that cannot be ended, because it computes, does not delay the new password. As long as it is left, an error says so. When it is gone, the
// password is verified again.
func TestASessionThatCannotBeEndedDelaysNoPassword(t *testing.T) {
	t.Parallel()
	app := newApp(t, "computing")
	app.converge(t)
	app.logins.Terminate = true
	store := &memory{}
	user := app.user(store)
	first, err := user.Converge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := compute(t, app, first.Record)
	user.Request, user.InPlace, user.Generation = "leaked", true, 1
	begun := time.Now()
	second, err := user.Converge(t.Context())
	if took := time.Since(begun); took > revokedWithin || !errors.Is(err, postgres.ErrSessions) || second.Generation != 2 || store.published != 2 {
		t.Errorf("after %s, readers get generation %d: %v", took, store.published, err)
	}
	t.Logf("readers have the new password after %s", time.Since(begun))
	app.expect(t, "while the session computes", map[credential.Record]credential.State{first.Record: credential.Refused, second.Record: credential.Accepted})
	user.Generation = 2
	if _, err := user.Converge(t.Context()); !errors.Is(err, postgres.ErrSessions) {
		t.Errorf("while the session computes: %v", err)
	}
	if !finds(t, app.quick(second.Record, second.Record)) {
		t.Error("a quick check finds nothing while the session computes")
	}
	if err := <-ended; err == nil {
		t.Error("the session has changed its password")
	}
	noSessionIsLeft(t, "usename", first.Username)
	if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrUnproven) {
		t.Errorf("when the session has ended: %v", err)
	}
	if last, err := user.Converge(t.Context()); err != nil || last.Record != second.Record || !last.Verified {
		t.Errorf("in the end: %+v, %v", last, err)
	}
	if finds(t, app.quick(second.Record, second.Record)) {
		t.Error("in the end, a quick check finds a difference")
	}
}

// A login whose session does not end is not dropped, but it cannot log in.
func TestASessionThatCannotBeEndedDelaysNoRetirement(t *testing.T) {
	t.Parallel()
	app, leaked := madeApp(t, "computing-deleted")
	ended := compute(t, app, leaked)
	begun := time.Now()
	err := app.logins.Delete(t.Context(), app.mark, leaked.Username)
	if took := time.Since(begun); took > revokedWithin || !errors.Is(err, postgres.ErrSessions) {
		t.Errorf("after %s: %v", took, err)
	}
	app.expect(t, "while the session computes", map[credential.Record]credential.State{leaked: credential.Retired})
	if err := <-ended; err == nil {
		t.Error("the session has changed its password")
	}
	if err := app.logins.Delete(t.Context(), app.mark, leaked.Username); err != nil {
		t.Errorf("when the session has ended: %v", err)
	}
}
