package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// QuickCheck compares the server with the state that Converge and credential.User left. It writes nothing. It costs one statement for all
// roles, the database and all logins, and one connection outside of the pool.
type QuickCheck struct {
	Tenant Tenant
	// Owner is the owner of the tenant.
	Owner credential.Owner
	Apps  []Expected
	// Prove is a credential whose password is verified by a login to the tenant's database. If it is zero, QuickCheck inspects the contents
	// of the database instead.
	Prove credential.Record
}

// Expected is the expected state of an app's logins.
type Expected struct {
	Logins Logins
	Owner  credential.Owner
	// Current is the only credential in use.
	Current credential.Given
	// Others are the other logins of the app, which must not be able to log in.
	Others []string
}

// Difference returns what differs from the expected state, or "". Everything that Converge or credential.User would change is a difference.
func (q QuickCheck) Difference(ctx context.Context) (string, error) {
	server := q.Tenant.Server
	var shared tenantSeen
	var logins map[string]loginSeen
	var address string
	sessions := noSessions
	if slices.ContainsFunc(q.Apps, func(app Expected) bool { return app.Logins.Terminate }) {
		sessions = openSessions
	}
	err := server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, "SELECT "+loginColumns+sessions+", (SELECT "+tenantJSON()+") FROM pg_roles WHERE rolname = ANY($3)",
			q.Tenant.roles(), q.Tenant.Database, q.usernames())
		if err != nil {
			return err
		}
		address = addressOf(on)
		logins, err = scanLogins(rows, &shared)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("check tenant database %s: %w", q.Tenant.Database, err)
	}
	if difference := q.compare(shared, logins); difference != "" {
		return difference, nil
	}
	if q.Prove.Username == "" {
		return q.checkInside(ctx, address)
	}
	return q.checkLogin(ctx, address)
}

// usernames returns the names of all logins.
func (q QuickCheck) usernames() []string {
	var all []string
	for _, app := range q.Apps {
		all = append(append(all, app.Current.Username), app.Others...)
	}
	return all
}

// compare returns what differs outside of the database.
func (q QuickCheck) compare(shared tenantSeen, logins map[string]loginSeen) string {
	if shared.Database == nil {
		return "database " + q.Tenant.Database
	}
	if statements, err := q.Tenant.plan(q.Owner, shared); err != nil || len(statements) > 0 {
		return "the roles of the tenant"
	}
	if len(q.Tenant.planRights(*shared.Database)) > 0 {
		return "the rights on database " + q.Tenant.Database
	}
	for _, app := range q.Apps {
		if difference := app.compare(logins); difference != "" {
			return difference
		}
	}
	return ""
}

// compare returns what differs in the logins of an app.
func (e Expected) compare(logins map[string]loginSeen) string {
	if e.Logins.check() != nil {
		return "the settings of the logins of " + e.Owner.String()
	}
	for _, username := range append([]string{e.Current.Username}, e.Others...) {
		role, ok := logins[username]
		current := username == e.Current.Username
		switch {
		case !ok && !current:
			continue
		case !ok, !role.isOf(e.Owner), role.canLogin != current, current && role.given != e.Current,
			current && len(role.lingering) > 0, !current && e.Logins.Terminate && len(role.sessions) > 0:
			return "role " + username
		case len(e.Logins.plan(username, role)) > 0, e.Logins.excess(username, role.memberships) != nil:
			return "the access or the limits of role " + username
		}
	}
	return ""
}

// checkInside inspects the contents of the database.
func (q QuickCheck) checkInside(ctx context.Context, address string) (string, error) {
	var statements []string
	settings := q.Tenant.Server.pool.Config().ConnConfig
	settings.Database = q.Tenant.Database
	maps.Copy(settings.RuntimeParams, q.Tenant.Server.ownSettings())
	settings.ValidateConnect = newEnough(q.Tenant.Server.major, nil) // The pool has checked that the server is the primary, and nothing is written.
	leave, err := q.Tenant.Server.places.enter(ctx, q.Tenant.Database)
	if err != nil {
		return "", err
	}
	defer leave()
	err = q.Tenant.Server.beside(ctx, address, settings, func(inside *pgx.Conn, err error) error {
		if err != nil {
			return explain(err)
		}
		statements, err = q.Tenant.inside(ctx, inside)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("inspect tenant database %s: %w", q.Tenant.Database, err)
	}
	if len(statements) > 0 {
		return "the rights inside database " + q.Tenant.Database, nil
	}
	return "", nil
}

// checkLogin verifies a password. A login that cannot be verified now counts as a difference too.
func (q QuickCheck) checkLogin(ctx context.Context, address string) (string, error) {
	known := slices.ContainsFunc(q.Apps, func(app Expected) bool { return app.Current == credential.GivenOf(q.Prove) })
	if !known {
		return "the credential of role " + q.Prove.Username, nil
	}
	err := q.Tenant.Server.loginAt(ctx, address, q.Tenant.Database, q.Prove)
	if code := codeOf(err); code != "" {
		return fmt.Sprintf("the login of role %s: %s", q.Prove.Username, code), nil
	}
	if err != nil {
		return "", fmt.Errorf("log in as %s: %w", q.Prove.Username, err)
	}
	return "", nil
}
