package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// mark is its comment; nil is none.
	mark     *string
	canLogin bool
	// makes tells that it may make roles or databases.
	makes       bool
	connections int
	// settings are those of ALTER ROLE … SET, each "name=value".
	settings []string
	// groups are the roles that it is a member of.
	groups []string
	// sessions is how many it has open.
	sessions int
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

// observe looks at logins, in one statement. Those that are not there are not in the answer.
func (l Logins) observe(ctx context.Context, usernames ...string) (map[string]loginSeen, error) {
	seen := map[string]loginSeen{}
	err := l.Tenant.Server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, `SELECT rolname, shobj_description(oid, 'pg_authid'), rolcanlogin, rolcreaterole OR rolcreatedb,
				rolconnlimit, coalesce(rolconfig, '{}'),
				ARRAY(SELECT DISTINCT pg_get_userbyid(roleid)::text FROM pg_auth_members WHERE member = pg_roles.oid),
				(SELECT count(*) FROM pg_stat_activity WHERE usesysid = pg_roles.oid)
			FROM pg_roles WHERE rolname = ANY($1)`, usernames)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var one loginSeen
			err := rows.Scan(&name, &one.mark, &one.canLogin, &one.makes, &one.connections, &one.settings, &one.groups, &one.sessions)
			if err != nil {
				return err
			}
			seen[name] = one
		}
		return rows.Err()
	})
	return seen, err
}

// plan returns the statements that give a login its access and limits; none if it has them.
func (l Logins) plan(username string, seen loginSeen) []string {
	var statements []string
	alter := "ALTER ROLE " + identifier(username)
	if seen.makes {
		statements = append(statements, alter+" NOCREATEROLE NOCREATEDB")
	}
	if want := cmp.Or(l.Limits.ConnectionLimit, unlimited); seen.connections != want {
		statements = append(statements, alter+" CONNECTION LIMIT "+strconv.Itoa(want))
	}
	group := l.group()
	if !slices.Contains(seen.groups, group) {
		statements = append(statements, "GRANT "+identifier(group)+" TO "+identifier(username))
	}
	for _, other := range l.Tenant.roles() {
		if other != group && slices.Contains(seen.groups, other) {
			statements = append(statements, "REVOKE "+identifier(other)+" FROM "+identifier(username))
		}
	}
	for _, setting := range [][2]string{
		{settingRole, group},
		{settingStatement, milliseconds(l.Limits.StatementTimeout)},
		{settingIdle, milliseconds(l.Limits.IdleInTransactionTimeout)},
	} {
		statements = append(statements, planSetting(alter, setting[0], setting[1], seen.settings)...)
	}
	return statements
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
