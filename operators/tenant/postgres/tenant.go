package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// ErrUnsettled tells that others change the same all the time, or that a change had no effect. Converge again later.
var ErrUnsettled = errors.New("it does not settle")

// rounds is how often a call looks again, which it does after each of its transactions, and after each that others were faster with.
const rounds = 32

// Tenant is what a tenant has in a server: a database, the role that owns it, and the roles that read and write what is in it. Nobody
// logs in as those; the logins of apps are members of one of them.
type Tenant struct {
	Server *Server
	// Database is the name of the database, Owner of the role that owns it.
	Database, Owner string
	// ReadWrite and ReadOnly are the roles whose members read and write, and read, what the owner makes. They have the rights to
	// tables and sequences that the owner makes from then on, in all schemas; what was there before, as in a database that is
	// adopted, the owner grants.
	ReadWrite, ReadOnly string
	// Adopt takes over roles that carry no mark. If one can log in it can go on to.
	Adopt bool
	// DropDatabase lets Delete drop the database with all that is in it.
	DropDatabase bool
}

// Tenant is the tenant of these names in the server.
func (s *Server) Tenant(of names.Tenant) Tenant {
	return Tenant{Server: s, Database: of.Database(), Owner: of.Owner(), ReadWrite: of.ReadWrite(), ReadOnly: of.ReadOnly()}
}

// Converge makes the server have what the tenant has, marked as the owner's, and tells whether it wrote anything. Where all is as it should be
// it writes nothing. Roles with the mark of another, or without one unless Adopt is set, and a database that is not the owner role's,
// are credential.ErrConflict, and nothing is written then. What the owner of the database can hold up is ErrIncomplete: rights to it, and what is
// in it.
func (t Tenant) Converge(ctx context.Context, owner credential.Owner) (bool, error) { //nolint:gocognit // Two rounds, outside of the database and inside.
	wrote, there := false, false
	err := settle(ctx, func(ctx context.Context) (done bool, err error) {
		seen, err := t.observe(ctx)
		if err != nil {
			return false, err
		}
		there = false
		statements, err := t.plan(owner, seen)
		if err != nil {
			return true, err
		}
		if there = len(statements) == 0; there {
			if statements = t.planRights(*seen.Database); len(statements) == 0 {
				return true, nil
			}
			statements = append([]string{lockWait}, statements...)
		}
		wrote = true
		return false, transaction(ctx, t.Server.pool, statements)
	})
	if err != nil && there {
		err = incomplete(err)
	}
	if err != nil {
		return wrote, fmt.Errorf("converge the tenant's database %s: %w", t.Database, err)
	}
	err = settle(ctx, func(ctx context.Context) (done bool, err error) {
		err = t.Server.within(ctx, t.Database, func(inside *pgx.Conn) error {
			statements, err := t.inside(ctx, inside)
			done = len(statements) == 0
			if err != nil || done {
				return err
			}
			wrote = true
			return transaction(ctx, inside, append([]string{lockWait}, statements...))
		})
		return done, err
	})
	if err != nil {
		return wrote, fmt.Errorf("converge what is in the tenant's database %s: %w", t.Database, incomplete(err))
	}
	return wrote, nil
}

// incomplete returns ErrIncomplete with its cause. The tenant's roles and its database are there.
func incomplete(err error) error {
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}

// settle takes rounds of looking and doing until one is done. One that others were faster in is taken again.
func settle(ctx context.Context, round func(context.Context) (done bool, err error)) error {
	var last error
	for i := range rounds {
		done, err := round(ctx)
		if err != nil && !raced(err) {
			return err
		}
		if done && err == nil {
			return nil
		}
		if last = err; err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rand.N(time.Duration(i+1) * 5 * time.Millisecond)): //nolint:gosec // So that those who race part.
		}
	}
	if last == nil {
		return ErrUnsettled
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, last)
}

// tenantSeen is what a server has of a tenant.
type tenantSeen struct {
	Roles    map[string]roleSeen `json:"roles"`
	Database *databaseSeen       `json:"database"`
}

// roleSeen is what a server has of a role.
type roleSeen struct {
	// Mark is its comment; nil is none.
	Mark *string `json:"mark"`
	// Administered and Usable tell what the admin may do with it: see administers and uses.
	Administered bool `json:"administered"`
	Usable       bool `json:"usable"`
}

// databaseSeen is what a server has of a database.
type databaseSeen struct {
	Owner string `json:"owner"`
	// Open and Limit tell whether it takes connections, and how many.
	Open  bool `json:"open"`
	Limit int  `json:"limit"`
	// Valid is false after a DROP DATABASE that did not end.
	Valid bool `json:"valid"`
	// Rights to it: who has what.
	Rights []right `json:"rights"`
}

// right is one that somebody has to something. Who is "" for PUBLIC.
type right struct {
	Who  string `json:"who"`
	What string `json:"what"`
}

// tenantJSON is a tenantSeen as an expression: $1 are the names of the roles, $2 is that of the database.
const tenantJSON = `json_build_object(
		'roles', (SELECT json_object_agg(rolname, json_build_object(
				'mark', shobj_description(oid, 'pg_authid'), 'administered', ` + administers + `, 'usable', ` + uses + `))
			FROM pg_roles WHERE rolname = ANY($1)),
		'database', (SELECT json_build_object('owner', pg_get_userbyid(datdba), 'valid', datconnlimit <> -2, 'open', datallowconn,
				'limit', datconnlimit, 'rights', (
				SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', privilege_type))
				FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) LEFT JOIN pg_roles ON pg_roles.oid = grantee))
			FROM pg_database WHERE datname = $2))`

// observe looks at the roles and the database, in one statement.
func (t Tenant) observe(ctx context.Context) (seen tenantSeen, err error) {
	err = t.Server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, "SELECT "+tenantJSON, t.roles(), t.Database).Scan(&seen)
	})
	return seen, err
}

// roles are those of the tenant, that of the owner last.
func (t Tenant) roles() []string { return []string{t.ReadOnly, t.ReadWrite, t.Owner} }

// insideSeen is what a tenant's database has.
type insideSeen struct {
	// Public are the rights to the schema public, nil if there is none.
	Public []right `json:"public"`
	// Defaults are the rights that are given to what the owner makes. What has the kind in front: "r SELECT" (pg_default_acl).
	Defaults []right `json:"defaults"`
}

// inside looks at what is in the database, and returns the statements of the transaction that is due.
func (t Tenant) inside(ctx context.Context, on executor) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Server.timeout)
	defer cancel()
	var seen insideSeen
	err := on.QueryRow(ctx, `SELECT json_build_object(
		'public', (SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', privilege_type))
			FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) LEFT JOIN pg_roles ON pg_roles.oid = grantee
			WHERE nspname = 'public'),
		'defaults', (SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', defaclobjtype::text || ' ' || privilege_type))
			FROM pg_default_acl, aclexplode(defaclacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee
			WHERE defaclnamespace = 0 AND pg_get_userbyid(defaclrole) = $1))`, t.Owner).Scan(&seen)
	if err != nil {
		return nil, explain(err)
	}
	return t.planInside(seen), nil
}
