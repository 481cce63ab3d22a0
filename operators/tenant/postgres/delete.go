package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
)

// Delete drops logins: it takes away the right to log in, ends their sessions, and drops them. One that owns something stays, without the
// right to log in, with ErrDependent, unless DropOwned is set. One that is not there is dropped. One that is not marked as the owner's
// is credential.ErrConflict, and stays.
func (l Logins) Delete(ctx context.Context, owner credential.Owner, usernames ...string) error {
	for _, username := range usernames {
		if err := l.drop(ctx, owner, username); err != nil {
			return fmt.Errorf("drop the role %s: %w", username, err)
		}
	}
	return nil
}

// drop does what is next, and looks again, until the role is not there.
func (l Logins) drop(ctx context.Context, owner credential.Owner, username string) error {
	handedOver := !l.DropOwned
	return settleDropped(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, username)
		if err != nil {
			return false, err
		}
		role, there := seen[username]
		switch {
		case !there:
			return true, nil
		case !role.isOf(owner):
			return true, foreign(username, role.mark, owner)
		case role.canLogin:
			return false, transaction(ctx, l.Tenant.Server.pool, []string{"ALTER ROLE " + identifier(username) + " NOLOGIN"})
		case role.sessions > 0:
			return false, l.endSessions(ctx, username, role)
		case !handedOver:
			handedOver = true
			return false, l.handOver(ctx, username, role)
		}
		return false, transaction(ctx, l.Tenant.Server.pool, []string{"DROP ROLE " + identifier(username)})
	})
}

// settleDropped settles what drops something: if somebody else has dropped it, one looks again.
func settleDropped(ctx context.Context, round func(context.Context) (done bool, err error)) error {
	return settle(ctx, func(ctx context.Context) (bool, error) {
		done, err := round(ctx)
		if gone(err) {
			return false, nil
		}
		return done, err
	})
}

// handOver gives what a login owns in the tenant's database to the tenant's owner, and drops its rights to other things.
func (l Logins) handOver(ctx context.Context, username string, seen loginSeen) error {
	there, err := l.Tenant.observe(ctx)
	if err != nil || there.Database == nil {
		return err
	}
	return l.Tenant.Server.within(ctx, l.Tenant.Database, func(inside *pgx.Conn) error {
		statements := []string{
			"REASSIGN OWNED BY " + identifier(username) + " TO " + identifier(l.Tenant.Owner),
			"DROP OWNED BY " + identifier(username),
		}
		if !seen.usable { // Only who has its rights may.
			statements = append(use(username), statements...)
		}
		return transaction(ctx, inside, statements)
	})
}

// Delete drops the database, with all that is in it and all sessions in it, if DropDatabase is set, and then the roles. Without it, a
// database that is there is ErrDependent, and nothing is dropped. What is not there is dropped. A role that is not marked as the
// owner's is credential.ErrConflict, and nothing is dropped. The logins of apps are deleted before.
func (t Tenant) Delete(ctx context.Context, owner credential.Owner) error {
	err := settleDropped(ctx, func(ctx context.Context) (bool, error) {
		seen, err := t.observe(ctx)
		if err != nil {
			return false, err
		}
		statement, err := t.planDelete(owner, seen)
		if err != nil || statement == "" {
			return true, err
		}
		return false, transaction(ctx, t.Server.pool, []string{statement})
	})
	if err != nil {
		return fmt.Errorf("drop the tenant's database %s and its roles: %w", t.Database, err)
	}
	return nil
}

// planDelete is the next statement, "" if there is nothing left.
func (t Tenant) planDelete(owner credential.Owner, seen tenantSeen) (string, error) {
	for name, role := range seen.Roles {
		if role.Mark == nil || *role.Mark != owner.String() {
			return "", foreign(name, role.Mark, owner)
		}
	}
	if database := seen.Database; database != nil && database.Owner == t.Owner {
		if !t.DropDatabase {
			return "", fmt.Errorf("%w: the database %s holds what the tenant has stored: allow to drop it, or drop it yourself",
				ErrDependent, t.Database)
		}
		return "DROP DATABASE " + identifier(t.Database) + " WITH (FORCE)", nil
	}
	if len(seen.Roles) == 0 {
		return "", nil
	}
	var there []string
	for _, name := range t.roles() {
		if _, is := seen.Roles[name]; is {
			there = append(there, name)
		}
	}
	return "DROP ROLE " + identifiers(there...), nil
}
