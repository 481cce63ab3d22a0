package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQL expressions for the rights of the administrator on the role of a row of pg_roles. Since version 16 CREATEROLE is not enough to change a
// role, and a membership has three independent options: ADMIN, INHERIT and SET (release notes of PostgreSQL 16, "Privileges").
//
// For an administrator that is a member of n roles, pg_has_role needs time proportional to the square of n in version 15, and the server caches
// the result only until it is asked about another role. So these expressions first look for direct grants to the administrator. The result is
// the same.
const (
	// administers: the right to change, comment on, grant and drop the role. Since version 16 the creator of a role has it. Before, CREATEROLE is
	// enough, but no longer after an upgrade to 16.
	administers = "CASE WHEN EXISTS (" + ownMembership + " AND own.admin_option) THEN true ELSE pg_has_role(oid, 'MEMBER WITH ADMIN OPTION') END"
	// uses: all rights of the role, and the right to make it the owner of a database.
	uses = "CASE WHEN " + since16 + " THEN pg_has_role(oid, 'USAGE') AND pg_has_role(oid, 'SET') " +
		"WHEN EXISTS (" + ownMembership + " AND me.rolinherit) THEN true ELSE pg_has_role(oid, 'USAGE') END"
	// ownMembership is a query for the direct grants of the role to the administrator.
	ownMembership = "SELECT FROM pg_auth_members own JOIN pg_roles me ON me.oid = own.member WHERE own.roleid = pg_roles.oid AND me.rolname = current_user"
	// since16 is true if the server has separate membership options. Older servers do not know the keyword SET.
	since16 = "current_setting('server_version_num')::int >= 160000"
)

// administer lets the administrator change, grant and drop a role, also after an upgrade of the server to version 16. A server of that
// version rejects the statement if the administrator does not have the option yet.
func administer(role string) string {
	return "GRANT " + identifier(role) + " TO CURRENT_USER WITH ADMIN OPTION"
}

// use gives the administrator all rights of a role that it administers. It first revokes a grant that the server may have made when the
// role was created (createrole_self_grant, since version 16), because GRANT does not add SET or INHERIT to an existing membership.
func use(role string) []string {
	return []string{"REVOKE " + identifier(role) + " FROM CURRENT_USER", "GRANT " + identifier(role) + " TO CURRENT_USER"}
}

// executor is a pool or a connection.
type executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// identifier quotes the name of a role or database. Such names cannot be statement parameters.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text for a statement. It requires standard_conforming_strings, which a Server sets.
func literal(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", "''") + "'"
}

// identifiers quotes names, separated by commas.
func identifiers(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = identifier(name)
	}
	return strings.Join(quoted, ", ")
}
