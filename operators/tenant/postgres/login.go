package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// Access is what an app does with its tenant's database.
type Access string

// The kinds of access.
const (
	// AsOwner makes, changes and drops tables, and all else in the database.
	AsOwner Access = "owner"
	// ReadWrite reads and writes what is in the tables that owners make, and makes none, but temporary ones.
	ReadWrite Access = "readWrite"
	// ReadOnly reads them.
	ReadOnly Access = "readOnly"
)

// Limits are those of each login by itself. The zero value has none of its own: the server's apply.
type Limits struct {
	// ConnectionLimit is how many sessions it may have at once; 0 is no limit. A rotation needs room for those of both logins.
	ConnectionLimit int
	// StatementTimeout ends a statement that runs longer, IdleInTransactionTimeout a session that leaves a transaction open for
	// longer. They are whole milliseconds, rounded up; 0 is the server's own. Sessions can choose others for themselves.
	StatementTimeout, IdleInTransactionTimeout time.Duration
}

// Logins are the roles that an app logs in as, one at a time. They are a credential.Rotator: its usernames are those of
// names.App.Logins. Tenant.Converge comes first, and Converge before a credential.User's, which tries to log in: a login that somebody took
// the access from cannot.
//
// Its methods write what is not as it should be, all of a login in one transaction, and nothing else.
type Logins struct {
	// Tenant is the one whose database it is.
	Tenant Tenant
	// Access is what sessions may do; "" is AsOwner. Sessions that are open keep what they had: see EndSessions.
	Access Access
	Limits Limits
	// Terminate ends the sessions of a login that is taken out of use, or whose password is set, and does not only refuse new ones with the
	// password of before.
	Terminate bool
	// DropOwned lets Delete give what the login itself owns, which is nothing unless it went around its role (SET ROLE NONE), to
	// the tenant's owner.
	DropOwned bool
}

// Logins are the roles of an app of these names, to log in as with the access and the limits of the zero values.
func (s *Server) Logins(of names.App) Logins {
	return Logins{Tenant: s.Tenant(names.Tenant{Name: of.Tenant})}
}

var _ credential.System = Logins{}

// Observe tells what the server has of a login. A password is tried by logging in to the tenant's database; only the answer that it is
// wrong is Refused. A login that has as many sessions as it may is Present, as nobody can try then; all other answers are errors. A login
// that may not log in is Retired, whatever the password.
func (l Logins) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	seen, err := l.observe(ctx, username)
	if err != nil {
		return "", fmt.Errorf("look for the role %s: %w", username, err)
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
	case codeOf(err) == wrongPassword:
		return credential.Refused, nil
	case codeOf(err) == tooManyConnections && role.isFull():
		return credential.Present, nil
	}
	return "", fmt.Errorf("log in as %s: %w", username, err)
}

// Create makes a login with the password, the owner's mark, access and limits. If it is there it is credential.ErrExists.
func (l Logins) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	hashed, err := l.verifier(record.Password)
	if err != nil {
		return fmt.Errorf("create the role %s: %w", record.Username, err)
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
	if err == nil { // What the admin may do with it now is for the server to say.
		_, err = l.Converge(ctx, owner, record.Username)
	}
	if err != nil {
		return fmt.Errorf("create the role %s: %w", record.Username, err)
	}
	return nil
}

// Set gives a login the password, the right to log in, the owner's mark, access and limits. A role has one password, so the one before
// is not accepted any more, whether it is to be kept or not: a rotation that keeps it goes to the app's other login. Sessions are kept, unless
// they hold the locks that this needs. If the role is another's it is credential.ErrConflict.
//
// With Terminate no session with the password of before is left. So that none comes back, the login may not log in for some seconds.
func (l Logins) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	hashed, err := l.verifier(change.Password)
	if err != nil {
		return fmt.Errorf("set the password of the role %s: %w", change.Username, err)
	}
	var contest contest
	err = settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, change.Username)
		if err != nil {
			return false, err
		}
		role, there := seen[change.Username]
		switch {
		case !there:
			return true, fmt.Errorf("it is not there: %w", credential.ErrUnproven)
		case role.mark != nil && *role.mark != owner.String():
			return true, foreign(change.Username, role.mark, owner)
		case l.Terminate && role.canLogin:
			contest.alone = false
			return false, contest.shut(ctx, l, change.Username, role)
		case l.Terminate && role.sessions > 0: // They could change it back.
			contest.alone = false
			return false, l.endSessions(ctx, change.Username, role)
		}
		open, attribute := !l.Terminate || contest.alone, " NOLOGIN"
		if open {
			attribute = " LOGIN"
		}
		statements := append([]string{
			"ALTER ROLE " + identifier(change.Username) + attribute + " PASSWORD " + literal(hashed) + " VALID UNTIL 'infinity'",
			keep(owner, change.Record),
		}, l.plan(change.Username, role)...)
		set, err := contest.change(ctx, l, change.Username, role, statements)
		switch {
		case !set:
			return false, err
		case !open: // Logins that have begun before are refused at their end.
			contest.alone = true
			return false, wait(ctx, drainTime)
		}
		return contest.lasts(ctx, l, change.Record)
	})
	if err != nil {
		return fmt.Errorf("set the password of the role %s: %w", change.Username, err)
	}
	return nil
}

// Converge gives those of the logins that are there, and the owner's, access and limits, and tells whether it wrote anything. It never
// touches a password, a mark or the right to log in. Those that are not there, or not the owner's, are left to what is done about
// credentials. If it is a member of another of the tenant's roles by somebody whose grants the admin cannot take away, which only a superuser
// can since version 16, it is ErrRights, and all else is done.
func (l Logins) Converge(ctx context.Context, owner credential.Owner, usernames ...string) (bool, error) {
	wrote := false
	if err := l.check(); err != nil {
		return false, err
	}
	err := settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, usernames...)
		if err != nil {
			return false, err
		}
		var statements []string
		var excess error
		for _, username := range usernames {
			if role, there := seen[username]; there && role.isOf(owner) {
				statements = append(statements, l.plan(username, role)...)
				excess = errors.Join(excess, l.excess(username, role.memberships))
			}
		}
		if len(statements) == 0 {
			return true, excess
		}
		wrote = true
		return false, transaction(ctx, l.Tenant.Server.pool, statements)
	})
	if err != nil {
		return wrote, fmt.Errorf("converge the logins of the database %s: %w", l.Tenant.Database, err)
	}
	return wrote, nil
}
