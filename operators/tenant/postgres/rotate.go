package postgres

import (
	"context"
	"fmt"

	"github.com/einmal-operators/einmal/credential"
)

var _ credential.Rotator = Logins{}

// Superseded tells whether one of the other logins, if it is the owner's, may log in. With Terminate it is also whether it has sessions.
func (l Logins) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, others []string) (bool, error) {
	seen, err := l.observe(ctx, others...)
	if err != nil {
		return false, fmt.Errorf("look for the logins beside %s: %w", current.Username, err)
	}
	for _, role := range seen {
		if role.isOf(owner) && (role.canLogin || l.Terminate && role.sessions > 0) {
			return true, nil
		}
	}
	return false, nil
}

// Retire takes the right to log in from the other logins, those that are the owner's. They keep their sessions, unless Terminate is set. It
// is credential.ErrUnproven, and nothing is taken, if the current one may not log in.
func (l Logins) Retire(ctx context.Context, owner credential.Owner, current credential.Record, others []string) error {
	seen, err := l.observe(ctx, current.Username)
	if err != nil {
		return fmt.Errorf("look for the role %s: %w", current.Username, err)
	}
	if role := seen[current.Username]; !role.isOf(owner) || !role.canLogin {
		return fmt.Errorf("take the logins beside %s out of use, which may not log in itself: %w", current.Username, credential.ErrUnproven)
	}
	for _, username := range others {
		if username == current.Username {
			continue
		}
		if err := l.retire(ctx, owner, username); err != nil {
			return fmt.Errorf("take the role %s out of use: %w", username, err)
		}
	}
	return nil
}

func (l Logins) retire(ctx context.Context, owner credential.Owner, username string) error {
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
			return false, transaction(ctx, l.Tenant.Server.pool, []string{"ALTER ROLE " + identifier(username) + " NOLOGIN"})
		case l.Terminate && role.sessions > 0:
			return true, l.endSessions(ctx, username, role)
		}
		return true, nil
	})
}

// Sessions is how many sessions a login has open: after a rotation, whether the one before it is still in use. A login that is not there
// has none.
func (l Logins) Sessions(ctx context.Context, username string) (int, error) {
	seen, err := l.observe(ctx, username)
	if err != nil {
		return 0, fmt.Errorf("look for the sessions of the role %s: %w", username, err)
	}
	return seen[username].sessions, nil
}

// EndSessions ends the sessions of a login of the owner. Who has the password comes back at once, with the access and the limits of now:
// PostgreSQL lets sessions that are open keep theirs when those or the password change.
func (l Logins) EndSessions(ctx context.Context, owner credential.Owner, username string) error {
	err := settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, username)
		if err != nil {
			return false, err
		}
		role, there := seen[username]
		switch {
		case there && !role.isOf(owner):
			return true, foreign(username, role.mark, owner)
		case role.sessions > 0:
			return true, l.endSessions(ctx, username, role)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("end the sessions of the role %s: %w", username, err)
	}
	return nil
}

// endSessions ends the sessions of a role, and waits until they have ended, at most 5 seconds each. Only who has its rights may, so the admin has
// them for as long as that takes.
func (l Logins) endSessions(ctx context.Context, username string, seen loginSeen) error {
	statements := []string{"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = " + literal(username)}
	if !seen.usable {
		statements = append(append(use(username), statements...), "REVOKE "+identifier(username)+" FROM CURRENT_USER")
	}
	return transaction(ctx, l.Tenant.Server.pool, statements)
}
