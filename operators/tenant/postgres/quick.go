package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// QuickCheck compares what a server has of a tenant with what Converge and credential.User have left there. It writes nothing, and costs one
// statement for all roles, the database and all logins, and one connection beside those of the pool.
type QuickCheck struct {
	Tenant Tenant
	// Owner is that of the tenant.
	Owner credential.Owner
	Apps  []Expected
	// Prove is the credential whose password is tried, for the database of the tenant. If it is zero, QuickCheck looks inside the database.
	Prove credential.Record
}

// Expected is what a server is expected to have of an app.
type Expected struct {
	Logins Logins
	Owner  credential.Owner
	// Current is the credential that is in use, and the only one.
	Current credential.Given
	// Others are the other logins of the app: none of them may log in.
	Others []string
}

// Difference returns what is not as expected, "" for nothing. All that Converge or credential.User would do something about is a difference.
func (q QuickCheck) Difference(ctx context.Context) (string, error) {
	server := q.Tenant.Server
	var shared tenantSeen
	var logins map[string]loginSeen
	var address string
	sessions := "0"
	if slices.ContainsFunc(q.Apps, func(app Expected) bool { return app.Logins.Terminate }) {
		sessions = countSessions
	}
	err := server.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, "SELECT "+loginColumns+sessions+", (SELECT "+tenantJSON+") FROM pg_roles WHERE rolname = ANY($3)",
			q.Tenant.roles(), q.Tenant.Database, q.usernames())
		if err != nil {
			return err
		}
		address = addressOf(on)
		logins, err = scanLogins(rows, &shared)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("check the tenant's database %s: %w", q.Tenant.Database, err)
	}
	if difference := q.compare(shared, logins); difference != "" {
		return difference, nil
	}
	if q.Prove.Username == "" {
		return q.checkInside(ctx, address)
	}
	return q.checkLogin(ctx, address)
}

// usernames are those of all logins.
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
		return "the database " + q.Tenant.Database
	}
	if statements, err := q.Tenant.plan(q.Owner, shared); err != nil || len(statements) > 0 {
		return "the roles of the tenant"
	}
	if len(q.Tenant.planRights(*shared.Database)) > 0 {
		return "the rights to the database " + q.Tenant.Database
	}
	for _, app := range q.Apps {
		if difference := app.compare(logins); difference != "" {
			return difference
		}
	}
	return ""
}

// compare returns what differs of the logins of an app.
func (e Expected) compare(logins map[string]loginSeen) string {
	if e.Logins.check() != nil {
		return "what the logins of " + e.Owner.String() + " are to have"
	}
	for _, username := range append([]string{e.Current.Username}, e.Others...) {
		role, ok := logins[username]
		current := username == e.Current.Username
		switch {
		case !ok && !current:
			continue
		case !ok, !role.isOf(e.Owner), role.canLogin != current, current && role.given != e.Current,
			!current && e.Logins.Terminate && role.sessions > 0:
			return "the role " + username
		case len(e.Logins.plan(username, role)) > 0, e.Logins.excess(username, role.memberships) != nil:
			return "the access or the limits of the role " + username
		}
	}
	return ""
}

// checkInside looks inside the database.
func (q QuickCheck) checkInside(ctx context.Context, address string) (string, error) {
	var statements []string
	settings := q.Tenant.Server.pool.Config().ConnConfig
	settings.Database = q.Tenant.Database
	settings.ValidateConnect = newEnough(nil) // The pool has seen that the server is a primary, and nothing is written.
	err := q.Tenant.Server.beside(ctx, address, settings, func(inside *pgx.Conn, err error) error {
		if err != nil {
			return explain(err)
		}
		statements, err = q.Tenant.inside(ctx, inside)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look inside the tenant's database %s: %w", q.Tenant.Database, err)
	}
	if len(statements) > 0 {
		return "the rights inside the database " + q.Tenant.Database, nil
	}
	return "", nil
}

// checkLogin tries a password. A login that nobody can try now is a difference too.
func (q QuickCheck) checkLogin(ctx context.Context, address string) (string, error) {
	known := slices.ContainsFunc(q.Apps, func(app Expected) bool { return app.Current == credential.GivenOf(q.Prove) })
	if !known {
		return "the credential of the role " + q.Prove.Username, nil
	}
	err := q.Tenant.Server.loginAt(ctx, address, q.Tenant.Database, q.Prove)
	if code := codeOf(err); code != "" {
		return fmt.Sprintf("the login of the role %s: %s", q.Prove.Username, code), nil
	}
	if err != nil {
		return "", fmt.Errorf("log in as %s: %w", q.Prove.Username, err)
	}
	return "", nil
}
