package postgres

import (
	"context"
	"fmt"

	"github.com/einmal-operators/einmal/credential"
)

var _ credential.Rotator = Logins{}

// Superseded returns whether another login of the owner may log in, and which credentials the comments on the logins name. With Terminate,
// a login with open sessions counts too.
func (l Logins) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, others []string) (credential.Beside, error) {
	seen, err := l.observe(ctx, append([]string{current.Username}, others...)...)
	if err != nil {
		return credential.Beside{}, fmt.Errorf("read the other logins of %s: %w", current.Username, err)
	}
	var found credential.Beside
	for username, role := range seen {
		if !role.isOf(owner) {
			continue
		}
		if username == current.Username {
			found.Current = role.given
		} else if role.canLogin || l.Terminate && role.sessions > 0 {
			found.Accepted = true
		}
		if role.canLogin && role.given.After(found.Latest) {
			found.Latest = role.given
		}
	}
	return found, nil
}

// Retire takes the right to log in from the owner's other logins. They keep their sessions, unless Terminate is set or the sessions hold
// locks that this needs. If the current login may not log in, Retire changes nothing and returns credential.ErrUnproven.
func (l Logins) Retire(ctx context.Context, owner credential.Owner, current credential.Record, others []string) error {
	seen, err := l.observe(ctx, current.Username)
	if err != nil {
		return fmt.Errorf("read role %s: %w", current.Username, err)
	}
	if role := seen[current.Username]; !role.isOf(owner) || !role.canLogin {
		return fmt.Errorf("retire the other logins of %s, which cannot log in itself: %w", current.Username, credential.ErrUnproven)
	}
	for _, username := range others {
		if username == current.Username {
			continue
		}
		if err := l.retire(ctx, owner, username); err != nil {
			return fmt.Errorf("retire role %s: %w", username, err)
		}
	}
	return nil
}

func (l Logins) retire(ctx context.Context, owner credential.Owner, username string) error {
	var contest contest
	return settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, username)
		if err != nil {
			return false, err
		}
		role := seen[username]
		switch {
		case !role.isOf(owner):
			return true, nil
		case role.canLogin:
			return false, contest.shut(ctx, l, username, role)
		case l.Terminate && role.sessions > 0:
			return false, l.endSessions(ctx, username, role)
		}
		return true, nil
	})
}

// endSessions ends the sessions of a role and waits up to 5 seconds for each. Only members of a role may do that, so the administrator is a
// member for the duration of the transaction.
func (l Logins) endSessions(ctx context.Context, username string, seen loginSeen) error {
	const all = " FROM pg_stat_activity WHERE usename = "
	return transaction(ctx, l.Tenant.Server.pool, actor{username, seen.usable}.executes( // Signal all sessions first, then wait for each.
		"SELECT pg_terminate_backend(pid)"+all+literal(username), "SELECT pg_terminate_backend(pid, 5000)"+all+literal(username)))
}
