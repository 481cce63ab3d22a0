package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What the admin may do with the role of a row of pg_roles, as expressions. Since version 16 CREATEROLE alone lets nobody change a role, and
// a membership has three options, each by itself: ADMIN, INHERIT and SET (release notes of PostgreSQL 16, "Privileges").
//
// For an admin that is a member of n roles, pg_has_role takes a time that grows with the square of n in version 15, and the server keeps the result
// only until it is asked about another role. So these expressions first look for what was granted to the admin itself. The answer is the same.
const (
	// administers: change, comment on, grant and drop it. Since version 16 whoever makes a role may. Before, CREATEROLE is enough; but who
	// has nothing else may not any more after an upgrade to 16.
	administers = "CASE WHEN EXISTS (" + ownMembership + " AND own.admin_option) THEN true ELSE pg_has_role(oid, 'MEMBER WITH ADMIN OPTION') END"
	// uses: have all of its rights, and make it the owner of a database.
	uses = "CASE WHEN " + since16 + " THEN pg_has_role(oid, 'USAGE') AND pg_has_role(oid, 'SET') " +
		"WHEN EXISTS (" + ownMembership + " AND me.rolinherit) THEN true ELSE pg_has_role(oid, 'USAGE') END"
	// ownMembership is a query for what the admin was granted itself of the role.
	ownMembership = "SELECT FROM pg_auth_members own JOIN pg_roles me ON me.oid = own.member WHERE own.roleid = pg_roles.oid AND me.rolname = current_user"
	// since16 tells whether the server keeps the options apart. Servers before that do not know the word SET.
	since16 = "current_setting('server_version_num')::int >= 160000"
)

// administer lets the admin change, grant and drop a role also when the server has been upgraded to version 16. Servers of that version
// refuse it to whom they have not given it already, and say so.
func administer(role string) string {
	return "GRANT " + identifier(role) + " TO CURRENT_USER WITH ADMIN OPTION"
}

// use gives the admin all rights of a role that it administers. What it may have given itself when it made the role is taken back first, as
// a GRANT leaves a membership without SET or INHERIT as it is (createrole_self_grant, since version 16).
func use(role string) []string {
	return []string{"REVOKE " + identifier(role) + " FROM CURRENT_USER", "GRANT " + identifier(role) + " TO CURRENT_USER"}
}

// executor is a pool or a connection.
type executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// identifier quotes a name for a statement: those of roles and databases take no parameters.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text for a statement. It is for sessions with standard_conforming_strings, as a Server's are.
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
