package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

const (
	// contestTime is how long a change of a login is retried against sessions of that login that hold the required locks.
	contestTime = 8 * time.Second
	// lockWait limits how long each attempt waits for a lock.
	lockWait = "SET LOCAL lock_timeout = '500ms'"
	// drainTime is how long logins in progress get to end while the role may not log in. The server checks the right to log in at the end
	// of a login, but reads the password verifier at its beginning.
	drainTime = 2 * time.Second
	// appearTime is how long a session that was accepted just before the right to log in was revoked may take to appear in
	// pg_stat_activity.
	appearTime = time.Second
	// endTime is how long a change waits for the sessions of a login to end. A session that computes, for example a SCRAM verifier with many iterations,
	// ends only after that.
	endTime = 3 * time.Second
)

// Which sessions of a login are ended.
const (
	everySession = ""
	// writers are sessions that have written to a shared catalog and not committed, or that wait for such a session. ALTER ROLE writes to
	// pg_authid and pg_db_role_setting.
	writers = ` AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' AND database = 0 AND mode <> 'AccessShareLock')`
)

// contest is a change of a login that the login's own sessions can block: a role may change its own password, and until that transaction
// commits it holds the lock on the role's row.
type contest struct {
	owner credential.Owner
	begun time.Time
	// lost counts the attempts that such sessions blocked.
	lost int
	// alone is true if the password was set while the login had no session, or only such that have been told to end, and could not get one.
	alone bool
	// ending is when the change first told sessions to end, and pause how long to wait before the next look at them.
	ending time.Time
	pause  time.Duration
}

// change executes statements that change a login. If the login's own sessions block them, the next attempt ends those sessions first, in
// the same transaction; a client must then log in again before it can block another attempt. It reports whether the statements were
// executed. If it returns false without an error, the caller must observe and try again.
func (c *contest) change(ctx context.Context, of Logins, username string, seen loginSeen, statements []string) (bool, error) {
	if c.begun.IsZero() {
		c.begun = time.Now()
	}
	all := []string{lockWait}
	if c.lost > 0 {
		which := writers
		if of.Terminate {
			which = everySession
		}
		all = append(all, end(username, seen, which)...)
	}
	all = append(all, statements...)
	if of.Terminate { // In the same transaction, so that it is not lost if the process crashes afterwards.
		all = append(all, end(username, seen, everySession)...)
	}
	err := transaction(ctx, of.Tenant.Server.pool, all)
	if locked := codeOf(err) == lockTimeout; locked || raced(err) {
		c.lost++
		if locked && time.Since(c.begun) < contestTime { // Prepared transactions hold locks without a session.
			return false, of.Tenant.Server.rollBack(ctx, c.owner, preparedWriters, append(of.Tenant.roles(), username))
		}
	}
	return err == nil, err
}

// shut takes the right to log in from a login. If its sessions must end and it has any, shut waits until no further session can appear. The
// caller must then observe again to find the remaining sessions.
func (c *contest) shut(ctx context.Context, of Logins, username string, seen loginSeen) error {
	done, err := c.change(ctx, of, username, seen, []string{"ALTER ROLE " + identifier(username) + " NOLOGIN"})
	if !done || !of.Terminate || len(seen.sessions) == 0 && c.lost == 0 {
		return err
	}
	return wait(ctx, appearTime)
}

func wait(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
		return nil
	}
}

// endSessions tells the sessions of a login to end, and waits a moment. The caller must then observe again.
func (c *contest) endSessions(ctx context.Context, of Logins, username string, seen loginSeen) error {
	if c.ending.IsZero() {
		c.ending, c.pause = time.Now(), 20*time.Millisecond
	}
	if err := of.signal(ctx, username, seen, everySession); err != nil {
		return err
	}
	c.pause *= 2
	return wait(ctx, min(c.pause, time.Second))
}

// gaveUp reports whether sessions of a login are left although they had enough time to end.
func (c *contest) gaveUp(seen loginSeen) bool {
	return len(seen.sessions) > 0 && !c.ending.IsZero() && time.Since(c.ending) > endTime
}

// remain returns the error about sessions that do not end.
func remain(username string, sessions []int) error {
	return fmt.Errorf("%w: role %s, process IDs %s; they end when their current computation does, or with a restart of the server",
		ErrSessions, username, listOf(sessions))
}

// listOf returns numbers with commas between them.
func listOf(numbers []int) string {
	texts := make([]string, 0, len(numbers))
	for _, number := range numbers {
		texts = append(texts, strconv.Itoa(number))
	}
	return strings.Join(texts, ",")
}

// signal tells sessions of a login to end, and does not wait. Only members of a role may do that, so the administrator is one for the duration of the
// transaction.
func (l Logins) signal(ctx context.Context, username string, seen loginSeen, which string) error {
	return transaction(ctx, l.Tenant.Server.pool, end(username, seen, which))
}

// end returns the statements that end sessions of a login without waiting. Only members of the login may do that, so the administrator
// becomes one until the end of the transaction.
func end(username string, seen loginSeen, which string) []string {
	return actor{username, seen.usable}.executes("SELECT pg_stat_clear_snapshot()", // Otherwise the transaction sees an old snapshot.
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+literal(username)+which)
}

// actor is a role with whose rights the administrator executes statements. usable is roleSeen.Usable.
type actor struct {
	role   string
	usable bool
}

// executes returns the statements of a transaction in which the administrator has the rights of the role.
func (a actor) executes(statements ...string) []string {
	if a.usable {
		return statements
	}
	return append(append(use(a.role), statements...), "REVOKE "+identifier(a.role)+" FROM CURRENT_USER")
}

// becomes returns the statements of a transaction in which the role itself is the current one. It returns none for no statements.
func (a actor) becomes(statements ...string) []string {
	if len(statements) == 0 {
		return nil
	}
	return a.executes(slices.Concat([]string{"SET LOCAL ROLE " + identifier(a.role)}, statements, []string{"RESET ROLE"})...)
}
