package postgres

import (
	"context"
	"fmt"

	"github.com/einmal-operators/einmal/credential"
)

var _ credential.Rotator = Logins{}

// Superseded returns whether one of the other logins, if it is the owner's, may log in, and which credentials the comments on the logins name. With
// Terminate it counts also if one of the others has sessions.
func (l Logins) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, others []string) (credential.Beside, error) {
	seen, err := l.observe(ctx, append([]string{current.Username}, others...)...)
	if err != nil {
		return credential.Beside{}, fmt.Errorf("look for the logins beside %s: %w", current.Username, err)
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

// Retire takes the right to log in from the other logins, those that are the owner's. They keep their sessions, unless Terminate is set or
// they hold the locks that this needs. It is credential.ErrUnproven, and nothing is taken, if the current one may not log in.
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
	const all = " FROM pg_stat_activity WHERE usename = "
	return transaction(ctx, l.Tenant.Server.pool, asMember(username, seen, // All at once first, and then it waits for one after the other.
		"SELECT pg_terminate_backend(pid)"+all+literal(username), "SELECT pg_terminate_backend(pid, 5000)"+all+literal(username)))
}
