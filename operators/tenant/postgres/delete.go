package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	l.Terminate = true
	handedOver := !l.DropOwned
	var contest contest
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
			return false, contest.shut(ctx, l, username, role)
		case role.sessions > 0:
			return false, l.endSessions(ctx, username, role)
		case !handedOver:
			handedOver = true
			return false, l.handOver(ctx, username, role)
		}
		return false, l.Tenant.Server.dropRoles(ctx, username)
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

// handOver gives what a login owns to the tenant's owner, and drops its rights to other things: in the tenant's database, and in each other
// that has something of it.
func (l Logins) handOver(ctx context.Context, username string, seen loginSeen) error {
	there, err := l.Tenant.observe(ctx)
	if err != nil {
		return err
	}
	databases, err := l.Tenant.Server.dependents(ctx, username)
	if err != nil {
		return err
	}
	statements := []string{"DROP OWNED BY " + identifier(username)}
	if _, is := there.Roles[l.Tenant.Owner]; is {
		statements = append([]string{"REASSIGN OWNED BY " + identifier(username) + " TO " + identifier(l.Tenant.Owner)}, statements...)
	}
	if there.Database != nil && !slices.Contains(databases, l.Tenant.Database) {
		databases = append(databases, l.Tenant.Database) // It has rights to the database itself.
	}
	if !seen.usable { // Only who has its rights may.
		statements = append(use(username), statements...)
	}
	return l.Tenant.Server.inEach(ctx, databases, statements)
}

// inEach executes statements in several databases.
func (s *Server) inEach(ctx context.Context, databases, statements []string) error {
	for _, database := range databases {
		err := s.within(ctx, database, func(inside *pgx.Conn) error { return transaction(ctx, inside, statements) })
		if err != nil {
			return fmt.Errorf("in the database %s: %w", database, err)
		}
	}
	return nil
}

// dependents are the databases in which something depends on roles: what they own, or have rights to.
func (s *Server) dependents(ctx context.Context, roles ...string) ([]string, error) {
	var databases []string
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, `SELECT coalesce(array_agg(DISTINCT datname::text), '{}') FROM pg_shdepend JOIN pg_database ON pg_database.oid = dbid
			WHERE refclassid = 'pg_authid'::regclass AND refobjid IN (SELECT oid FROM pg_roles WHERE rolname = ANY($1))`, roles).Scan(&databases)
	})
	return databases, err
}

// dropRoles drops roles. If something depends on one, the error names the databases: the server names none where it is its own.
func (s *Server) dropRoles(ctx context.Context, roles ...string) error {
	err := transaction(ctx, s.pool, []string{"DROP ROLE " + identifiers(roles...)})
	if codeOf(err) != dependent {
		return err
	}
	databases, failed := s.dependents(ctx, roles...)
	if failed != nil || len(databases) == 0 {
		return err
	}
	what := "database "
	if len(databases) > 1 {
		what = "databases "
	}
	return fmt.Errorf("in the %s%s: %w", what, strings.Join(databases, ", "), err)
}

// Delete drops the database, with all that is in it and all sessions in it, if DropDatabase is set, and then the roles, with what they own in
// other databases. Without it, a database that is there is ErrDependent, and nothing is dropped. What is not there is dropped. A role that is
// not marked as the owner's is credential.ErrConflict, and nothing is dropped. The logins of apps are deleted before.
func (t Tenant) Delete(ctx context.Context, owner credential.Owner) error {
	disowned := !t.DropDatabase
	err := settleDropped(ctx, func(ctx context.Context) (bool, error) {
		seen, err := t.observe(ctx)
		if err != nil {
			return false, err
		}
		drop, err := t.mayDelete(owner, seen)
		switch {
		case err != nil:
			return true, err
		case drop:
			return false, transaction(ctx, t.Server.pool, []string{"DROP DATABASE " + identifier(t.Database) + " WITH (FORCE)"})
		case len(seen.Roles) == 0:
			return true, nil
		case !disowned:
			disowned = true
			return false, t.disown(ctx, seen)
		}
		return false, t.Server.dropRoles(ctx, t.present(seen)...)
	})
	if err != nil {
		return fmt.Errorf("drop the tenant's database %s and its roles: %w", t.Database, err)
	}
	return nil
}

// mayDelete finds what is not the owner's, and reports whether the database is to be dropped.
func (t Tenant) mayDelete(owner credential.Owner, seen tenantSeen) (bool, error) {
	for name, role := range seen.Roles {
		if role.Mark == nil || *role.Mark != owner.String() {
			return false, foreign(name, role.Mark, owner)
		}
	}
	if seen.Database == nil || seen.Database.Owner != t.Owner {
		return false, nil
	}
	if !t.DropDatabase {
		return false, fmt.Errorf("%w: the database %s holds what the tenant has stored: allow to drop it, or drop it yourself",
			ErrDependent, t.Database)
	}
	return true, nil
}

// present are the roles of the tenant that are there, that of the owner last.
func (t Tenant) present(seen tenantSeen) []string {
	return slices.DeleteFunc(t.roles(), func(name string) bool {
		_, is := seen.Roles[name]
		return !is
	})
}

// disown drops what the tenant's roles own in databases of others, and their rights there.
func (t Tenant) disown(ctx context.Context, seen tenantSeen) error {
	roles := t.present(seen)
	databases, err := t.Server.dependents(ctx, roles...)
	if err != nil {
		return err
	}
	var statements []string
	for _, name := range roles {
		if !seen.Roles[name].Usable { // Only who has its rights may.
			statements = append(statements, use(name)...)
		}
	}
	return t.Server.inEach(ctx, databases, append(statements, "DROP OWNED BY "+identifiers(roles...)))
}
