package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

const (
	// contestTime is how long a change of a login goes on against sessions of that login that hold the locks for it.
	contestTime = 8 * time.Second
	// lockWait is how long each try waits for a lock.
	lockWait = "SET LOCAL lock_timeout = '500ms'"
	// drainTime is how long logins that have begun have for their end, while the role may not log in. The server checks the right to log in
	// at the end of a login, and reads at its beginning what it compares the password with.
	drainTime = 2 * time.Second
	// appearTime is how long sessions have to appear in pg_stat_activity that were let in just before the right to log in was taken away.
	appearTime = time.Second
)

// Which sessions of a login are ended.
const (
	everySession = ""
	// writers have written to a catalog that all databases share and have not committed, or wait for others that have. ALTER ROLE writes to
	// pg_authid and pg_db_role_setting.
	writers = ` AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' AND database = 0 AND mode <> 'AccessShareLock')`
)

// contest is a change of a login that its own sessions can hold up: a role may change its own password, and whoever has not committed that
// holds the lock of the role's row.
type contest struct {
	begun time.Time
	// lost is how often such sessions were faster.
	lost int
	// alone tells that the password was set while the login had no session, and could get none.
	alone bool
}

// change executes statements that change a login. If the login's own sessions keep the locks from it, it ends those sessions in front of the
// statements with the next try, and so wins: whoever comes back has to log in first. It reports whether the statements were executed; without
// an error, another look and another try are due.
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
	if of.Terminate { // In the same transaction: it is not lost if the process dies behind it.
		all = append(all, end(username, seen, everySession)...)
	}
	err := transaction(ctx, of.Tenant.Server.pool, all)
	if locked := codeOf(err) == lockTimeout; locked || raced(err) {
		c.lost++
		if locked && time.Since(c.begun) < contestTime {
			return false, nil
		}
	}
	return err == nil, err
}

// shut takes the right to log in from a login. If its sessions are to be ended, and it has any, it waits until none can appear any more. Another
// look is due, which finds those that are left.
func (c *contest) shut(ctx context.Context, of Logins, username string, seen loginSeen) error {
	done, err := c.change(ctx, of, username, seen, []string{"ALTER ROLE " + identifier(username) + " NOLOGIN"})
	if !done || !of.Terminate || seen.sessions == 0 && c.lost == 0 {
		return err
	}
	return wait(ctx, appearTime)
}

// wait waits for a time.
func wait(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
		return nil
	}
}

// lasts reports whether a password that was just set is accepted: a session of the login can change it again. Where that cannot be tried now, it
// is left to the proof.
func (c *contest) lasts(ctx context.Context, of Logins, record credential.Record) (bool, error) {
	if err := of.Tenant.Server.login(ctx, record.Username, of.Tenant.Database, record.Password); codeOf(err) != wrongPassword {
		return true, nil
	}
	c.lost++
	if !of.Terminate || time.Since(c.begun) > contestTime {
		return true, fmt.Errorf("a session of the login has changed it again: %w", credential.ErrUnproven)
	}
	return false, nil
}

// end returns the statements that end sessions of a login, and do not wait for that. Only a member with the rights of the login may, so the admin
// becomes one until the end of the transaction.
func end(username string, seen loginSeen, which string) []string {
	return asMember(username, seen, "SELECT pg_stat_clear_snapshot()", // Else a transaction sees only those that it saw before.
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+literal(username)+which)
}

// asMember lets the admin execute statements with the rights of a login.
func asMember(username string, seen loginSeen, statements ...string) []string {
	if seen.usable {
		return statements
	}
	return append(append(use(username), statements...), "REVOKE "+identifier(username)+" FROM CURRENT_USER")
}
