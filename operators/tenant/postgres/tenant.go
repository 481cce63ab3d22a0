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

// ErrUnsettled means that other sessions keep changing the same objects, or that a change had no effect. Converge again later.
var ErrUnsettled = errors.New("the state keeps changing, or a change had no effect")

// rounds limits how often one call observes. It observes after each of its transactions, and after each conflict with another session.
const rounds = 32

// Tenant is what a tenant has in a server: a database, the role that owns it, and the roles that read and write its contents. These roles
// cannot log in; the logins of apps are members of one of them.
type Tenant struct {
	Server *Server
	// Database is the name of the database, Owner the role that owns it.
	Database, Owner string
	// ReadWrite and ReadOnly are the roles whose members read and write, or only read, what the owner creates. They get default privileges
	// on new tables and sequences in all schemas. For existing objects, as in an adopted database, the owner must grant the rights.
	ReadWrite, ReadOnly string
	// Adopt takes over roles without an ownership mark. A role that can log in keeps that right.
	Adopt bool
	// DropDatabase lets Delete drop the database with all its contents.
	DropDatabase bool
}

// Tenant returns the tenant with these names in the server.
func (s *Server) Tenant(of names.Tenant) Tenant {
	return Tenant{Server: s, Database: of.Database(), Owner: of.Owner(), ReadWrite: of.ReadWrite(), ReadOnly: of.ReadOnly()}
}

// Converge creates or corrects the database and the roles, marked as the owner's, and reports whether it wrote anything. If a role has
// another mark, or none and Adopt is not set, it writes nothing and returns credential.ErrConflict. So it does if the database belongs to a role that is
// not of this tenant; then, if the tenant's roles are complete, the error is ErrIncomplete too. A database that a role of this tenant has got is taken
// back. What the owner of the database can block, namely rights on it and in it, is ErrIncomplete.
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
		there = seen.Database != nil && len(t.planRoles(owner, seen.Roles)) == 0
		if len(statements) == 0 {
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
		return wrote, fmt.Errorf("converge tenant database %s: %w", t.Database, err)
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
		return wrote, fmt.Errorf("converge the contents of tenant database %s: %w", t.Database, incomplete(err))
	}
	return wrote, nil
}

// incomplete wraps an error in ErrIncomplete. The tenant's roles and its database exist.
func incomplete(err error) error {
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}

// settle repeats a round of observing and changing until it is done. It repeats a round that conflicted with another session.
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
		case <-time.After(rand.N(time.Duration(i+1) * 5 * time.Millisecond)): //nolint:gosec // Not secret: jitter.
		}
	}
	if last == nil {
		return ErrUnsettled
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, last)
}

// tenantSeen is the observed state of a tenant.
type tenantSeen struct {
	Roles    map[string]roleSeen `json:"roles"`
	Database *databaseSeen       `json:"database"`
}

// roleSeen is the observed state of a role.
type roleSeen struct {
	// Mark is its comment, nil for none.
	Mark *string `json:"mark"`
	// Administered and Usable describe the rights of the administrator on it: see administers and uses.
	Administered bool `json:"administered"`
	Usable       bool `json:"usable"`
}

// databaseSeen is the observed state of a database.
type databaseSeen struct {
	Owner string `json:"owner"`
	// OwnerMark is the comment on its owner, nil for none. OwnerUsable says what roleSeen.Usable does, of the owner.
	OwnerMark   *string `json:"ownerMark"`
	OwnerUsable bool    `json:"ownerUsable"`
	// Open reports whether it accepts connections, Limit how many.
	Open  bool `json:"open"`
	Limit int  `json:"limit"`
	// Valid is false after an interrupted DROP DATABASE.
	Valid bool `json:"valid"`
	// Template databases cannot be dropped.
	Template bool `json:"template"`
	// Rights are the privileges of the tenant's roles and of PUBLIC on it.
	Rights []right `json:"rights"`
	// Grantors are the roles beside its owner that have given PUBLIC a privilege on it.
	Grantors []grantor `json:"grantors"`
}

// right is a privilege. Who is the grantee, "" for PUBLIC.
type right struct {
	Who  string `json:"who"`
	What string `json:"what"`
}

// grantor is a role that has given PUBLIC privileges, a list such as "CONNECT, TEMPORARY". Usable is that of roleSeen.
type grantor struct {
	Name       string `json:"name"`
	Usable     bool   `json:"usable"`
	Privileges string `json:"privileges"`
}

// grantors returns an SQL query for the roles beside the owner that have given PUBLIC a privilege, with a grant option.
func grantors(acl, owner string) string {
	return fmt.Sprintf(`SELECT json_agg(json_build_object('name', rolname, 'usable', `+uses+`, 'privileges', privileges)) FROM pg_roles
		JOIN (SELECT grantor, string_agg(privilege_type, ', ') AS privileges FROM aclexplode(%s) WHERE grantee = 0 GROUP BY grantor) AS granted
		ON pg_roles.oid = grantor WHERE grantor <> %s`, acl, owner)
}

// tenantJSON is an SQL expression for a tenantSeen: $1 are the names of the roles, $2 is the name of the database.
func tenantJSON() string {
	return `json_build_object(
		'roles', (SELECT json_object_agg(rolname, json_build_object(
				'mark', shobj_description(oid, 'pg_authid'), 'administered', ` + administers + `, 'usable', ` + uses + `))
			FROM pg_roles WHERE rolname = ANY($1)),
		'database', (SELECT json_build_object('owner', pg_get_userbyid(datdba), 'ownerMark', shobj_description(datdba, 'pg_authid'),
				'ownerUsable', (SELECT ` + uses + ` FROM pg_roles WHERE oid = datdba), 'valid', datconnlimit <> -2, 'open', datallowconn,
				'limit', datconnlimit, 'template', datistemplate, 'rights', (
				SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', privilege_type))
				FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) LEFT JOIN pg_roles ON pg_roles.oid = grantee
				WHERE grantee = 0 OR rolname = ANY($1)), 'grantors', (` + grantors("datacl", "datdba") + `))
			FROM pg_database WHERE datname = $2))`
}

// observe reads the roles and the database in one statement.
func (t Tenant) observe(ctx context.Context) (seen tenantSeen, err error) {
	err = t.Server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, "SELECT "+tenantJSON(), t.roles(), t.Database).Scan(&seen)
	})
	return seen, err
}

// roles returns the roles of the tenant, the owner last.
func (t Tenant) roles() []string { return []string{t.ReadOnly, t.ReadWrite, t.Owner} }

// insideSeen is the observed state of the contents of a tenant's database.
type insideSeen struct {
	// Public is the schema public, nil if it does not exist.
	Public *schemaSeen `json:"public"`
	// Defaults are the default privileges on what the owner creates. What begins with the object type: "r SELECT" (pg_default_acl).
	Defaults []right `json:"defaults"`
}

// schemaSeen is the observed state of a schema. A tenant can give it to each of its roles.
type schemaSeen struct {
	Owner string `json:"owner"`
	// OwnerUsable says what roleSeen.Usable does, of the owner.
	OwnerUsable bool `json:"ownerUsable"`
	// Rights are the privileges of the tenant's roles and of PUBLIC on it.
	Rights []right `json:"rights"`
	// Grantors are the roles beside its owner that have given PUBLIC a privilege on it.
	Grantors []grantor `json:"grantors"`
}

// inside observes the contents of the database and returns the statements of the transaction that is needed.
func (t Tenant) inside(ctx context.Context, on executor) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Server.timeout)
	defer cancel()
	var seen insideSeen
	err := on.QueryRow(ctx, `SELECT json_build_object(
		'public', (SELECT json_build_object('owner', pg_get_userbyid(nspowner),
				'ownerUsable', (SELECT `+uses+` FROM pg_roles WHERE oid = nspowner), 'rights', (
				SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', privilege_type))
				FROM aclexplode(coalesce(nspacl, acldefault('n', nspowner))) LEFT JOIN pg_roles ON pg_roles.oid = grantee
				WHERE grantee = 0 OR rolname = ANY($2)), 'grantors', (`+grantors("nspacl", "nspowner")+`))
			FROM pg_namespace WHERE nspname = 'public'),
		'defaults', (SELECT json_agg(json_build_object('who', coalesce(rolname, ''), 'what', defaclobjtype::text || ' ' || privilege_type))
			FROM pg_default_acl, aclexplode(defaclacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee
			WHERE defaclnamespace = 0 AND pg_get_userbyid(defaclrole) = $1 AND rolname = ANY($2)))`, t.Owner, t.roles()).Scan(&seen)
	if err != nil {
		return nil, explain(err)
	}
	return t.planInside(seen), nil
}
