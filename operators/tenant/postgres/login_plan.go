package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// unlimited is how PostgreSQL says that there is no limit of connections.
const unlimited = -1

// The settings of a login that are ours. Others that somebody gave it are left.
const (
	settingRole      = "role"
	settingStatement = "statement_timeout"
	settingIdle      = "idle_in_transaction_session_timeout"
)

// loginSeen is what a server has of a login.
type loginSeen struct {
	// mark is that of its owner, in its comment; nil is none.
	mark *string
	// given is the credential that its comment names; zero is none.
	given    credential.Given
	canLogin bool
	// makes tells that it may make roles or databases, inherits that what it is a member of gives it rights by itself.
	makes, inherits bool
	// administered and usable tell what the admin may do with it: see administers and uses.
	administered, usable bool
	connections          int
	// settings are those of ALTER ROLE … SET, each "name=value".
	settings []string
	// memberships are those in other roles. There can be several in one role, since version 16.
	memberships []membership
	// sessions is how many it has open.
	sessions int
}

// membership is one in a role.
type membership struct {
	Role string `json:"role"`
	// Works tells that the login has the role's rights, and can set it.
	Works bool `json:"works"`
	// By is who gave it, and Kept tells that the admin cannot take it away, as it can only for itself and for roles whose rights it has. Before
	// version 16 it is nobody's.
	By   string `json:"by"`
	Kept bool   `json:"kept"`
}

// revoke takes a membership away.
func (m membership) revoke(username string) string {
	statement := "REVOKE " + identifier(m.Role) + " FROM " + identifier(username)
	if m.By != "" {
		statement += " GRANTED BY " + identifier(m.By)
	}
	return statement
}

func (l loginSeen) isOf(owner credential.Owner) bool {
	return l.mark != nil && *l.mark == owner.String()
}

// isFull tells that it has as many sessions as it may.
func (l loginSeen) isFull() bool {
	return l.sessions > 0 && l.connections >= 0 && l.sessions >= l.connections
}

// foreign is the error of a role that is not the owner's.
func foreign(name string, mark *string, owner credential.Owner) error {
	if mark == nil {
		return fmt.Errorf("the role %s has no mark of its owner, %q: %w; it stays as it is", name, owner, credential.ErrConflict)
	}
	return fmt.Errorf("the role %s has the comment %q, not %q: %w; it stays as it is", name, *mark, owner, credential.ErrConflict)
}

const (
	// loginColumns are a loginSeen as columns of pg_roles, the name first. The number of its sessions comes behind.
	loginColumns = `rolname, shobj_description(oid, 'pg_authid'), rolcanlogin, rolcreaterole OR rolcreatedb, rolinherit,
				` + administers + `, ` + uses + `, rolconnlimit, coalesce(rolconfig, '{}'),
				(SELECT coalesce(json_agg(CASE WHEN ` + since16 + ` THEN json_build_object('role', pg_get_userbyid(roleid), 'by', pg_get_userbyid(grantor),
						'works', pg_has_role(member, roleid, 'USAGE') AND pg_has_role(member, roleid, 'SET'), 'kept', NOT pg_has_role(grantor, 'USAGE'))
					ELSE json_build_object('role', pg_get_userbyid(roleid), 'works', pg_has_role(member, roleid, 'USAGE')) END), '[]')
					FROM pg_auth_members WHERE member = pg_roles.oid), `
	// countSessions counts the sessions of a role, the last of the loginColumns. For each session the server looks whether the admin is a member of its
	// role.
	countSessions = "(SELECT count(*) FROM pg_stat_activity WHERE usesysid = pg_roles.oid)"
)

// observe looks at logins, in one statement. Those that are not there are not in the answer.
func (l Logins) observe(ctx context.Context, usernames ...string) (map[string]loginSeen, error) {
	var seen map[string]loginSeen
	err := l.Tenant.Server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, "SELECT "+loginColumns+countSessions+" FROM pg_roles WHERE rolname = ANY($1)", usernames)
		if err != nil {
			return err
		}
		seen, err = scanLogins(rows)
		return err
	})
	return seen, err
}

// scanLogins reads logins from rows of the loginColumns and their sessions, and more columns behind these into other variables.
func scanLogins(rows pgx.Rows, more ...any) (map[string]loginSeen, error) {
	defer rows.Close()
	seen := map[string]loginSeen{}
	for rows.Next() {
		var name string
		var one loginSeen
		err := rows.Scan(append([]any{
			&name, &one.mark, &one.canLogin, &one.makes, &one.inherits, &one.administered, &one.usable, &one.connections,
			&one.settings, &one.memberships, &one.sessions,
		}, more...)...)
		if err != nil {
			return nil, err
		}
		if one.mark != nil {
			*one.mark, one.given = parseComment(*one.mark)
			one.given = credential.Given{Username: name, Generation: one.given.Generation, Created: one.given.Created}
		}
		seen[name] = one
	}
	return seen, rows.Err()
}

// plan returns the statements that give a login its access and limits; none if it has them.
func (l Logins) plan(username string, seen loginSeen) []string {
	var statements []string
	alter := "ALTER ROLE " + identifier(username)
	if !seen.administered {
		statements = append(statements, administer(username))
	}
	if seen.makes || !seen.inherits {
		statements = append(statements, alter+" INHERIT NOCREATEROLE NOCREATEDB")
	}
	if want := cmp.Or(l.Limits.ConnectionLimit, unlimited); seen.connections != want {
		statements = append(statements, alter+" CONNECTION LIMIT "+strconv.Itoa(want))
	}
	statements = append(statements, l.planMemberships(username, seen.memberships)...)
	for _, setting := range [][2]string{
		{settingRole, l.group()},
		{settingStatement, milliseconds(l.Limits.StatementTimeout)},
		{settingIdle, milliseconds(l.Limits.IdleInTransactionTimeout)},
	} {
		statements = append(statements, planSetting(alter, setting[0], setting[1], seen.settings)...)
	}
	return statements
}

// planMemberships makes a login a member of the role of its access, and of none of the tenant's others. One that does not work is made
// anew, as a GRANT alone leaves one without SET or INHERIT as it is (since version 16).
func (l Logins) planMemberships(username string, has []membership) []string {
	var statements []string
	group := l.group()
	works := slices.ContainsFunc(has, func(one membership) bool { return one.Role == group && one.Works })
	for _, one := range has {
		ours := slices.Contains(l.Tenant.roles(), one.Role)
		if ours && !one.Kept && (one.Role != group || !works) {
			statements = append(statements, one.revoke(username))
		}
	}
	if !works {
		statements = append(statements, "GRANT "+identifier(group)+" TO "+identifier(username))
	}
	return statements
}

// excess finds a membership that gives a login more than its access, and that the admin cannot take away.
func (l Logins) excess(username string, has []membership) error {
	for _, one := range has {
		if one.Kept && one.Role != l.group() && slices.Contains(l.Tenant.roles(), one.Role) {
			return fmt.Errorf("the role %s is a member of %s, by %s: %w: as a superuser run %s", username, one.Role, one.By, ErrRights, one.revoke(username))
		}
	}
	return nil
}

// planSetting sets, changes or resets a setting; "" is none.
func planSetting(alter, name, want string, has []string) []string {
	at := slices.IndexFunc(has, func(one string) bool { return strings.HasPrefix(one, name+"=") })
	switch {
	case want == "" && at >= 0:
		return []string{alter + " RESET " + name}
	case want != "" && (at < 0 || has[at] != name+"="+want):
		return []string{alter + " SET " + name + " TO " + literal(want)}
	}
	return nil
}

// check finds what is wrong with what a login is to have.
func (l Logins) check() error {
	if l.group() == "" {
		return fmt.Errorf("the access of the logins is %q: give it %s, %s or %s", l.Access, AsOwner, ReadWrite, ReadOnly)
	}
	if l.Limits.ConnectionLimit < 0 {
		return fmt.Errorf("the connection limit of the logins is %d: give it 1 or more, or 0 for none", l.Limits.ConnectionLimit)
	}
	return nil
}

// verifier is what a login is given of a password, if the rest that it is to have is in order.
func (l Logins) verifier(password credential.Password) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	return newVerifier(password)
}

// group is the role that the logins work as; "" if there is none of that access.
func (l Logins) group() string {
	switch l.Access {
	case AsOwner, "":
		return l.Tenant.Owner
	case ReadWrite:
		return l.Tenant.ReadWrite
	case ReadOnly:
		return l.Tenant.ReadOnly
	default:
		return ""
	}
}

// milliseconds is how PostgreSQL keeps a time-out that was given without a unit; "" is none.
func milliseconds(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((timeout+time.Millisecond-1)/time.Millisecond), 10)
}
