package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// Access is the set of rights of an app in its tenant's database.
type Access string

// The kinds of access.
const (
	// AsOwner creates, changes and drops tables and everything else in the database.
	AsOwner Access = "owner"
	// ReadWrite reads and writes the tables that the owner creates. It can create only temporary tables.
	ReadWrite Access = "readWrite"
	// ReadOnly reads the tables that the owner creates.
	ReadOnly Access = "readOnly"
)

// Limits are the limits of each login. The zero value sets none, so the server's settings apply.
type Limits struct {
	// ConnectionLimit is the maximum number of sessions, 0 for unlimited. During a rotation each of the two logins has this limit.
	ConnectionLimit int
	// StatementTimeout limits the duration of a statement, IdleInTransactionTimeout the idle time of an open transaction. They are rounded
	// up to milliseconds. 0 means the server's setting. Sessions can change both for themselves.
	StatementTimeout, IdleInTransactionTimeout time.Duration
}

// Logins are the roles that an app uses to log in, one at a time. They are a credential.Rotator with the usernames of names.App.Logins.
// Call Tenant.Converge first, and Converge before credential.User.Converge, which verifies the password by a login: a login that lost its
// access would fail.
//
// The methods write only what differs, in one transaction for each login.
type Logins struct {
	// Tenant is the tenant that owns the database.
	Tenant Tenant
	// Access sets the rights of new sessions; "" is AsOwner. Open sessions keep their rights.
	Access Access
	Limits Limits
	// Terminate ends the sessions of a login when it is retired or its password is set. Otherwise only new sessions are affected.
	Terminate bool
	// DropOwned lets Delete reassign what the login itself owns to the tenant's owner. A login owns something only if it left its role (SET
	// ROLE NONE).
	DropOwned bool
}

// Logins returns the logins of an app with the zero values of access and limits.
func (s *Server) Logins(of names.App) Logins {
	return Logins{Tenant: s.Tenant(names.Tenant{Name: of.Tenant})}
}

var _ credential.System = Logins{}

// Observe returns the state of a login. It tests a password by a login to the tenant's database; only the answer that the password is wrong
// is Refused. If the server has accepted the password and then ends the session, for a limit, a right or a setting of the tenant, the state is
// Accepted and the error credential.ErrUnusable. All other answers are errors. A login without the right to log in is Retired, whatever the password.
func (l Logins) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	seen, err := l.observe(ctx, username)
	if err != nil {
		return "", fmt.Errorf("read role %s: %w", username, err)
	}
	role, there := seen[username]
	switch {
	case !there:
		return credential.Absent, nil
	case role.mark == nil:
		return credential.Unmarked, nil
	case *role.mark != owner.String():
		return credential.Foreign, nil
	case !role.canLogin:
		return credential.Retired, nil
	case password.IsZero():
		return credential.Present, nil
	}
	err = l.Tenant.Server.login(ctx, username, l.Tenant.Database, password)
	switch {
	case err == nil:
		return credential.Accepted, nil
	case proves(err):
		return credential.Accepted, fmt.Errorf("log in as %s: %w: %w", username, credential.ErrUnusable, err)
	case codeOf(err) == wrongPassword:
		return credential.Refused, nil
	}
	return "", fmt.Errorf("log in as %s: %w", username, err)
}

// Create creates a login with the password, the ownership mark, the access and the limits. It returns credential.ErrExists if the role
// exists.
func (l Logins) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	hashed, err := l.verifier(record.Password)
	if err != nil {
		return fmt.Errorf("create role %s: %w", record.Username, err)
	}
	statements := []string{
		"CREATE ROLE " + identifier(record.Username) + " LOGIN PASSWORD " + literal(hashed),
		keep(owner, record),
	}
	statements = append(statements, l.plan(record.Username, loginSeen{inherits: true, administered: true, connections: unlimited})...)
	err = settle(ctx, func(ctx context.Context) (bool, error) {
		err := transaction(ctx, l.Tenant.Server.pool, statements)
		if taken(err) {
			return true, fmt.Errorf("%w: %s", credential.ErrExists, codeOf(err))
		}
		return true, err
	})
	if err == nil { // The rights of the administrator on a new role depend on the server.
		_, err = l.Converge(ctx, owner, record.Username)
	}
	if err != nil {
		return fmt.Errorf("create role %s: %w", record.Username, err)
	}
	return nil
}

// Set gives a login the password, the right to log in, the ownership mark, the access and the limits. A role has one password, so the
// previous one is always rejected afterwards; a rotation that keeps it uses the app's other login. Sessions stay open, unless they hold
// locks that this needs. Set returns credential.ErrConflict if the role belongs to another owner, and credential.ErrSuperseded if it got a later
// record.
//
// With Terminate, no session with the previous password remains. To ensure that, the role cannot log in for some seconds. A session that does not end
// within three seconds does not delay the new password: Superseded then reports it, and Retire returns ErrSessions.
func (l Logins) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	hashed, err := l.verifier(change.Password)
	if err != nil {
		return fmt.Errorf("set password of role %s: %w", change.Username, err)
	}
	contest := contest{owner: owner}
	err = settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, change.Username)
		if err != nil {
			return false, err
		}
		role, there := seen[change.Username]
		switch {
		case !there:
			return true, fmt.Errorf("role does not exist: %w", credential.ErrUnproven)
		case role.mark != nil && *role.mark != owner.String():
			return true, foreign(change.Username, role.mark, owner)
		case role.given.After(credential.GivenOf(change.Record)):
			return true, role.given.CheckSet(change.Record)
		case l.Terminate && role.canLogin:
			contest.alone = false
			return false, contest.shut(ctx, l, change.Username, role)
		case l.Terminate && len(role.sessions) > 0 && !contest.gaveUp(role): // Open sessions could change the password back.
			contest.alone = false
			return false, contest.endSessions(ctx, l, change.Username, role)
		}
		open, attribute := !l.Terminate || contest.alone, " NOLOGIN"
		if open {
			attribute = " LOGIN"
		}
		statements := append([]string{
			"ALTER ROLE " + identifier(change.Username) + attribute + " PASSWORD " + literal(hashed) + " VALID UNTIL 'infinity'",
			keep(owner, change.Record, l.lingering(role)...),
		}, l.plan(change.Username, role)...)
		set, err := contest.change(ctx, l, change.Username, role, statements)
		if set && !open { // Logins that are in progress are rejected at their end.
			contest.alone = true
			return false, wait(ctx, drainTime)
		}
		return set, err
	})
	if err != nil {
		return fmt.Errorf("set password of role %s: %w", change.Username, err)
	}
	return nil
}

// lingering returns the sessions that have not ended although they had to.
func (l Logins) lingering(seen loginSeen) []int {
	if !l.Terminate {
		return nil
	}
	return seen.sessions
}

// Converge gives the owner's existing logins their access and limits, and reports whether it wrote anything. It never changes a password, a
// mark or the right to log in, and it skips logins that do not exist or belong to another owner. Sessions stay open, unless they hold locks that
// this needs. If a login is a member of another role of
// the tenant and the administrator cannot revoke that, which since version 16 may need a superuser, Converge does everything else and
// returns ErrRights.
func (l Logins) Converge(ctx context.Context, owner credential.Owner, usernames ...string) (bool, error) {
	wrote := false
	if err := l.check(); err != nil {
		return false, err
	}
	l.Terminate = false
	contests := map[string]*contest{}
	err := settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, usernames...)
		if err != nil {
			return false, err
		}
		username, statements, excess := l.next(owner, usernames, seen)
		if len(statements) == 0 {
			return true, excess
		}
		if contests[username] == nil {
			contests[username] = &contest{owner: owner}
		}
		wrote = true
		_, err = contests[username].change(ctx, l, username, seen[username], statements)
		return false, err
	})
	if err != nil {
		return wrote, fmt.Errorf("converge logins of database %s: %w", l.Tenant.Database, err)
	}
	return wrote, nil
}

// next returns the first of the owner's logins that does not have its access and limits, with the statements that give them. Without one, it returns
// what cannot be corrected.
func (l Logins) next(owner credential.Owner, usernames []string, seen map[string]loginSeen) (username string, statements []string, excess error) {
	for _, username := range usernames {
		role, there := seen[username]
		if !there || !role.isOf(owner) {
			continue
		}
		if statements := l.plan(username, role); len(statements) > 0 {
			return username, statements, nil
		}
		excess = errors.Join(excess, l.excess(username, role.memberships))
	}
	return "", nil, excess
}
