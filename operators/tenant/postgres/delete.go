package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// Delete drops logins: it takes away the right to log in and ends the sessions of all of them, and then drops one after the other. It skips logins that do not exist. If a
// login owns objects and DropOwned is not set, Delete returns ErrDependent; the login then remains but cannot log in. Rights that it has are lost. Sessions of
// other tenants of the operator that block the deletion are ended; if another session does, the error is ErrLocked and names it. If a login does not
// have the owner's mark, Delete does not change it and returns credential.ErrConflict.
func (l Logins) Delete(ctx context.Context, owner credential.Owner, usernames ...string) error {
	_ = l.Shut(ctx, owner, usernames...) // What holds up or prevents a drop keeps no other login open. Its own drop returns the error again.
	l.Terminate = true
	for _, username := range usernames {
		if err := l.drop(ctx, owner, username); err != nil {
			return fmt.Errorf("drop role %s: %w", username, err)
		}
	}
	return nil
}

// Shut takes the right to log in from the owner's logins and ends their sessions. It skips logins that do not exist or belong to another owner. An error
// of one login does not keep the others open. Call it for all apps before Delete, which can wait for locks.
func (l Logins) Shut(ctx context.Context, owner credential.Owner, usernames ...string) error {
	l.Terminate = true
	var failed []error
	for _, username := range usernames {
		if err := l.retire(ctx, owner, username); err != nil {
			failed = append(failed, fmt.Errorf("close role %s: %w", username, err))
		}
	}
	return errors.Join(failed...)
}

// drop executes the next step and observes again, until the role does not exist.
func (l Logins) drop(ctx context.Context, owner credential.Owner, username string) error {
	rolledBack, handedOver := false, false
	contest := contest{owner: owner}
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
		case contest.gaveUp(role):
			return true, remain(username, role.sessions)
		case len(role.sessions) > 0:
			return false, contest.endSessions(ctx, l, username, role)
		case !rolledBack:
			rolledBack = true
			return false, l.Tenant.Server.rollBack(ctx, owner, everyPrepared, []string{username})
		case !handedOver:
			handedOver = true
			return false, l.handOver(ctx, owner, username, role)
		}
		return false, l.Tenant.Server.dropRoles(ctx, owner, username)
	})
}

// settleDropped is settle for a deletion. If another process has dropped the object first, it observes again.
func settleDropped(ctx context.Context, round func(context.Context) (done bool, err error)) error {
	return settle(ctx, func(ctx context.Context) (bool, error) {
		done, err := round(ctx)
		if gone(err) {
			return false, nil
		}
		return done, err
	})
}

// handOver gives what a login owns to the tenant's owner role and drops its other rights, in the tenant's database and in every other
// database that contains something of it. Without DropOwned it drops only rights: it leaves out databases with objects that the login owns.
func (l Logins) handOver(ctx context.Context, owner credential.Owner, username string, seen loginSeen) error {
	there, err := l.Tenant.observe(ctx)
	if err != nil {
		return err
	}
	found, err := l.Tenant.Server.dependents(ctx, username)
	if err != nil {
		return err
	}
	if err := l.Tenant.reopen(ctx, there); err != nil {
		return err
	}
	statements := []string{"DROP OWNED BY " + identifier(username)}
	if _, is := there.Roles[l.Tenant.Owner]; is { // Also what it was given just now.
		statements = append([]string{"REASSIGN OWNED BY " + identifier(username) + " TO " + identifier(l.Tenant.Owner)}, statements...)
	} else if !l.DropOwned {
		return nil
	}
	if !seen.usable { // Requires the rights of the role.
		statements = append(use(username), statements...)
	}
	return l.Tenant.Server.inEach(ctx, owner, found.places(l.DropOwned), statements)
}

// reopen takes the database back from roles of the tenant and opens it, as Converge does. Its owner may have closed it.
func (t Tenant) reopen(ctx context.Context, seen tenantSeen) error {
	owner, is := seen.Roles[t.Owner]
	if !is || owner.Mark == nil || seen.Database == nil || !seen.Database.Valid || !t.isOwn(*owner.Mark, *seen.Database) {
		return nil
	}
	statements := append(t.planOwner(*seen.Database), t.planRights(*seen.Database)...)
	if len(statements) == 0 {
		return nil
	}
	return transaction(ctx, t.Server.pool, append([]string{lockWait}, statements...))
}

// dependencies are the databases with objects that depend on roles, and for each whether the roles own any of them. Otherwise they only have rights.
// "" stands for objects of the whole server, such as databases.
type dependencies map[string]bool

// dependents reads the dependencies of roles.
func (s *Server) dependents(ctx context.Context, roles ...string) (dependencies, error) {
	var found dependencies
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, `SELECT coalesce(json_object_agg(name, owns), '{}') FROM (
			SELECT coalesce(datname::text, '') AS name, bool_or(deptype = 'o') AS owns FROM pg_shdepend LEFT JOIN pg_database ON pg_database.oid = dbid
			WHERE refclassid = 'pg_authid'::regclass AND refobjid IN (SELECT oid FROM pg_roles WHERE rolname = ANY($1)) GROUP BY 1) AS found`, roles).Scan(&found)
	})
	return found, err
}

// databases returns the names of the databases.
func (d dependencies) databases() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d)), func(name string) bool { return name == "" })
}

// places returns where to drop rights of the roles, and with dropOwned also what they own. "" stands for the administrator's database: rights on
// objects of the whole server can be dropped in each database. Without dropOwned, databases with objects that the roles own are left out, and so is ""
// if there are any, because one of them may be the administrator's. Such roles cannot be dropped.
func (d dependencies) places(dropOwned bool) []string {
	owns := slices.Contains(slices.Collect(maps.Values(d)), true)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d)), func(name string) bool { return !dropOwned && (d[name] || name == "" && owns) })
}

// dropRoles drops roles. If an object depends on one, the error names the databases, because the server's own message does not.
func (s *Server) dropRoles(ctx context.Context, owner credential.Owner, roles ...string) error {
	err := s.insist(ctx, owner, "", "DROP ROLE "+identifiers(roles...))
	if codeOf(err) != dependent {
		return err
	}
	found, failed := s.dependents(ctx, roles...)
	databases := found.databases()
	if failed != nil || len(databases) == 0 {
		return err
	}
	what := "database "
	if len(databases) > 1 {
		what = "databases "
	}
	return fmt.Errorf("in %s%s: %w", what, strings.Join(databases, ", "), err)
}

// dropDatabase drops a database and ends its sessions. If it may not end one, it drops the database without ending sessions. PostgreSQL then ends
// autovacuum workers itself, which run as a superuser, and refuses with code 55006 if another session is left. The error names such sessions.
func (s *Server) dropDatabase(ctx context.Context, owner credential.Owner, database string) error {
	drop := "DROP DATABASE " + identifier(database)
	err := s.insist(ctx, owner, "", drop+" WITH (FORCE)")
	if codeOf(err) == noRights {
		err = s.insist(ctx, owner, "", drop)
	}
	if codeOf(err) != inUse {
		return err
	}
	users, failed := s.sessions(ctx, owner, "datname = $2 AND usename IS NOT NULL", database)
	if failed != nil || len(users) == 0 {
		return err
	}
	return fmt.Errorf("%s uses it: %w", listed(users), err)
}

// Delete drops the database with all its contents and sessions, if DropDatabase is set, and then the roles with what they own in other
// databases. It skips what does not exist. If the database exists and DropDatabase is not set, it drops nothing and returns ErrDependent.
// If a role does not have the owner's mark, it drops nothing and returns credential.ErrConflict. The logins of apps must be deleted before.
func (t Tenant) Delete(ctx context.Context, owner credential.Owner) error {
	return t.drop(ctx, owner, true)
}

// DeleteDatabase does what Delete does, but keeps the roles. It does nothing if DropDatabase is not set. Call it before the logins are deleted: what they own
// in the database need not be handed over then, which needs a lock of the server for each table.
func (t Tenant) DeleteDatabase(ctx context.Context, owner credential.Owner) error {
	if !t.DropDatabase {
		return nil
	}
	return t.drop(ctx, owner, false)
}

// drop executes the next step and observes again, until the database and, if they must go, the roles do not exist.
func (t Tenant) drop(ctx context.Context, owner credential.Owner, roles bool) error {
	rolledBack, disowned := false, false
	err := settleDropped(ctx, func(ctx context.Context) (bool, error) {
		seen, err := t.observe(ctx)
		if err != nil {
			return false, err
		}
		drop, err := t.mayDelete(owner, seen)
		switch {
		case err != nil:
			return true, err
		case drop && (seen.Database.Template || seen.Database.Owner != t.Owner):
			return false, t.reopen(ctx, seen)
		case drop && !rolledBack:
			rolledBack = true
			return false, t.Server.rollBack(ctx, owner, everyPrepared, t.present(seen))
		case drop:
			return false, t.Server.dropDatabase(ctx, owner, t.Database)
		case len(seen.Roles) == 0 || !roles:
			return true, nil
		case !disowned:
			disowned = true
			return false, t.disown(ctx, owner, seen)
		}
		return false, t.Server.dropRoles(ctx, owner, t.present(seen)...)
	})
	if err != nil {
		return fmt.Errorf("drop tenant database %s and its roles: %w", t.Database, err)
	}
	return nil
}

// mayDelete returns an error for what does not belong to the owner, and reports whether the database must be dropped.
func (t Tenant) mayDelete(owner credential.Owner, seen tenantSeen) (bool, error) {
	for name, role := range seen.Roles {
		if role.Mark == nil || *role.Mark != owner.String() {
			return false, foreign(name, role.Mark, owner)
		}
	}
	if seen.Database == nil || !t.isOwn(owner.String(), *seen.Database) {
		return false, nil
	}
	if !t.DropDatabase {
		return false, fmt.Errorf("%w: database %s contains the tenant's data; set dropOwned to true, or drop the database manually",
			ErrDependent, t.Database)
	}
	return true, nil
}

// present returns the roles of the tenant that exist, the owner last.
func (t Tenant) present(seen tenantSeen) []string {
	return slices.DeleteFunc(t.roles(), func(name string) bool {
		_, is := seen.Roles[name]
		return !is
	})
}

// disown drops what the tenant's roles own in databases of others, and their rights there. Without DropDatabase it drops only rights.
func (t Tenant) disown(ctx context.Context, owner credential.Owner, seen tenantSeen) error {
	roles := t.present(seen)
	found, err := t.Server.dependents(ctx, roles...)
	if err != nil {
		return err
	}
	var statements []string
	for _, name := range roles {
		if !seen.Roles[name].Usable { // Requires the rights of the role.
			statements = append(statements, use(name)...)
		}
	}
	return t.Server.inEach(ctx, owner, found.places(t.DropDatabase), append(statements, "DROP OWNED BY "+identifiers(roles...)))
}
