package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/credential"
)

var _ credential.Rotator = Logins{}

// Superseded returns whether another login of the owner may log in, and which credentials the comments on the logins name. With Terminate,
// a login with open sessions counts too. So do sessions of the current login that could not be ended when its password was set.
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
			found.Accepted = found.Accepted || len(role.lingering) > 0
		} else if role.canLogin || l.Terminate && len(role.sessions) > 0 {
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
//
// If sessions could not be ended when the current login got its password, Retire returns ErrSessions as long as one is left. When all are gone, it
// returns credential.ErrUnproven once, because they may have changed the password meanwhile.
func (l Logins) Retire(ctx context.Context, owner credential.Owner, current credential.Record, others []string) error {
	seen, err := l.observe(ctx, current.Username)
	if err != nil {
		return fmt.Errorf("read role %s: %w", current.Username, err)
	}
	role := seen[current.Username]
	if !role.isOf(owner) || !role.canLogin {
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
	if len(role.lingering) == 0 {
		return nil
	}
	return l.outlast(ctx, current.Username, role)
}

// outlast ends the sessions that had not ended when the login got its password.
func (l Logins) outlast(ctx context.Context, username string, seen loginSeen) error {
	left := slices.DeleteFunc(slices.Clone(seen.lingering), func(pid int) bool { return !slices.Contains(seen.sessions, pid) })
	if len(left) > 0 {
		if err := l.signal(ctx, username, seen, " AND pid IN ("+listOf(left)+")"); err != nil {
			return err
		}
		return remain(username, left)
	}
	err := transaction(ctx, l.Tenant.Server.pool, []string{lockWait, loginComment{mark: *seen.mark, given: seen.given}.on(username)})
	if err != nil {
		return err
	}
	return fmt.Errorf("the sessions of role %s have ended, its password must be verified again: %w", username, credential.ErrUnproven)
}

func (l Logins) retire(ctx context.Context, owner credential.Owner, username string) error {
	contest := contest{owner: owner}
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
		case l.Terminate && contest.gaveUp(role):
			return true, remain(username, role.sessions)
		case l.Terminate && len(role.sessions) > 0:
			return false, contest.endSessions(ctx, l, username, role)
		}
		return true, nil
	})
}
