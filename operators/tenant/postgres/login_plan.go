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

// unlimited is PostgreSQL's value for no connection limit.
const unlimited = -1

// The settings of a login that this package manages. All others are left unchanged.
const (
	settingRole      = "role"
	settingStatement = "statement_timeout"
	settingIdle      = "idle_in_transaction_session_timeout"
)

// loginSeen is the observed state of a login.
type loginSeen struct {
	// mark is the ownership mark in its comment, nil for none.
	mark *string
	// given is the credential that its comment names, zero for none.
	given    credential.Given
	canLogin bool
	// makes reports whether it may create roles or databases; inherits whether it inherits the rights of the roles that it is a member of.
	makes, inherits bool
	// administered and usable describe the rights of the administrator on it: see administers and uses.
	administered, usable bool
	connections          int
	// settings are those of its ALTER ROLE … SET settings that this package manages, each "name=value", of which no more than 100 characters. A tenant
	// can set others, of any size.
	settings []string
	// inDatabase are the same settings for the tenant's database only (ALTER ROLE … IN DATABASE), which stand over the others.
	inDatabase []string
	// memberships are its memberships in other roles. Since version 16 there can be several in one role.
	memberships []membership
	// sessions are the process IDs of its open sessions; lingering those of sessions that had not ended when its password was set.
	sessions, lingering []int
}

// membership is a membership of a login in a role.
type membership struct {
	Role string `json:"role"`
	// Works reports whether the login has the rights of the role and can SET ROLE to it.
	Works bool `json:"works"`
	// By is the grantor. Kept reports that the administrator cannot revoke the membership, because it lacks the rights of the grantor.
	// Before version 16 By is empty.
	By   string `json:"by"`
	Kept bool   `json:"kept"`
}

// revoke returns the statement that revokes a membership.
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

// foreign returns the error for a role that does not belong to the owner.
func foreign(name string, mark *string, owner credential.Owner) error {
	if mark == nil {
		return fmt.Errorf("role %s has no ownership mark, want %q: %w; it was not changed", name, owner, credential.ErrConflict)
	}
	return fmt.Errorf("role %s has the ownership mark %q, want %q: %w; it was not changed", name, *mark, owner, credential.ErrConflict)
}

const (
	// managed are the settings that this package manages, among the texts "name=value" in the column one.
	managed   = "coalesce(array_agg(left(one, 100)), '{}')"
	isManaged = "split_part(left(one, 100), '=', 1) IN ('" + settingRole + "', '" + settingStatement + "', '" + settingIdle + "')"
	// loginColumns selects a loginSeen from pg_roles, beginning with the name. The number of sessions follows. $2 is the tenant's
	// database.
	loginColumns = `rolname, shobj_description(oid, 'pg_authid'), rolcanlogin, rolcreaterole OR rolcreatedb, rolinherit,
				` + administers + `, ` + uses + `, rolconnlimit, (SELECT ` + managed + ` FROM unnest(rolconfig) one WHERE ` + isManaged + `),
				(SELECT ` + managed + ` FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase, unnest(setconfig) one
					WHERE setrole = pg_roles.oid AND datname = $2 AND ` + isManaged + `),
				(SELECT coalesce(json_agg(CASE WHEN ` + since16 + ` THEN json_build_object('role', pg_get_userbyid(roleid), 'by', pg_get_userbyid(grantor),
						'works', pg_has_role(member, roleid, 'USAGE') AND pg_has_role(member, roleid, 'SET'), 'kept', NOT pg_has_role(grantor, 'USAGE'))
					ELSE json_build_object('role', pg_get_userbyid(roleid), 'works', pg_has_role(member, roleid, 'USAGE')) END), '[]')
					FROM pg_auth_members WHERE member = pg_roles.oid), `
	// openSessions are the process IDs of the sessions of a role, and follow loginColumns; noSessions stands for none. For each session the server checks
	// whether the administrator is a member of its role.
	openSessions = "(SELECT coalesce(array_agg(pid ORDER BY pid), '{}') FROM pg_stat_activity WHERE usesysid = pg_roles.oid)"
	noSessions   = "'{}'::int[]"
)

// observe reads logins in one statement. The result has no entry for a login that does not exist.
func (l Logins) observe(ctx context.Context, usernames ...string) (map[string]loginSeen, error) {
	var seen map[string]loginSeen
	err := l.Tenant.Server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, "SELECT "+loginColumns+openSessions+" FROM pg_roles WHERE rolname = ANY($1)", usernames, l.Tenant.Database)
		if err != nil {
			return err
		}
		seen, err = scanLogins(rows)
		return err
	})
	return seen, err
}

// scanLogins reads logins from rows of loginColumns and openSessions, and further columns into other variables.
func scanLogins(rows pgx.Rows, more ...any) (map[string]loginSeen, error) {
	defer rows.Close()
	seen := map[string]loginSeen{}
	for rows.Next() {
		var name string
		var one loginSeen
		err := rows.Scan(append([]any{
			&name, &one.mark, &one.canLogin, &one.makes, &one.inherits, &one.administered, &one.usable, &one.connections,
			&one.settings, &one.inDatabase, &one.memberships, &one.sessions,
		}, more...)...)
		if err != nil {
			return nil, err
		}
		if one.mark != nil {
			read := parseComment(*one.mark)
			*one.mark, one.given, one.lingering = read.mark, read.given, read.lingering
			if !one.given.IsZero() {
				one.given.Username = name
			}
		}
		seen[name] = one
	}
	return seen, rows.Err()
}

// plan returns the statements that give a login its access and limits. There are none if it already has them.
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
		statements = append(statements, planSetting(alter+" IN DATABASE "+identifier(l.Tenant.Database), setting[0], "", seen.inDatabase)...)
	}
	return statements
}

// planMemberships makes a login a member of the role of its access and of no other role of the tenant. A membership without the options SET
// or INHERIT is revoked and granted again, because GRANT does not add these options (since version 16).
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

// excess returns an error for a membership that gives a login more than its access and that the administrator cannot revoke.
func (l Logins) excess(username string, has []membership) error {
	for _, one := range has {
		if one.Kept && one.Role != l.group() && slices.Contains(l.Tenant.roles(), one.Role) {
			return fmt.Errorf("role %s is a member of %s, granted by %s: %w; run as a superuser: %s", username, one.Role, one.By, ErrRights, one.revoke(username))
		}
	}
	return nil
}

// planSetting sets, changes or resets a setting. "" means that it must not be set.
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

// check returns an error if the access or the limits are invalid.
func (l Logins) check() error {
	if l.group() == "" {
		return fmt.Errorf("invalid access %q of the logins: must be %s, %s or %s", l.Access, AsOwner, ReadWrite, ReadOnly)
	}
	if l.Limits.ConnectionLimit < 0 {
		return fmt.Errorf("invalid connection limit %d of the logins: must be at least 1, or 0 for unlimited", l.Limits.ConnectionLimit)
	}
	return nil
}

// verifier returns the verifier of a password if access and limits are valid.
func (l Logins) verifier(password credential.Password) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	return newVerifier(password)
}

// group returns the role of the access, or "" if the access is unknown.
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

// milliseconds returns a timeout the way PostgreSQL stores it without a unit, or "" for none.
func milliseconds(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((timeout+time.Millisecond-1)/time.Millisecond), 10)
}
