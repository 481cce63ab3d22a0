package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// deletedWithin is how long a deletion may take that locks of another tenant block.
const deletedWithin = time.Minute

// Each role may grant rights on what it owns to each role, and set its own settings for each database. Another tenant cannot hold up a deletion with
// that: neither with an open or prepared transaction, nor in a database that it has closed. LOGIN stands for the deleted login.
func TestAnotherTenantHoldsUpNoDeletion(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string][]string{
		"open-grant":    {"BEGIN", "GRANT SELECT ON bait TO LOGIN"},
		"open-group":    {"BEGIN", "GRANT SELECT ON bait TO GROUP_rw"},
		"open-setting":  {"SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER IN DATABASE GROUP SET work_mem = '1MB'"},
		"prepared":      {"BEGIN", "GRANT SELECT ON bait TO LOGIN", "PREPARE TRANSACTION 'grip'"},
		"granted":       {"GRANT SELECT ON bait TO LOGIN, GROUP"},
		"granted-open":  {"GRANT SELECT ON bait TO LOGIN", "BEGIN", "ALTER TABLE bait ADD COLUMN more int"},
		"closed":        {"GRANT SELECT ON bait TO LOGIN", "ALTER DATABASE NEIGHBOUR CONNECTION LIMIT 0"},
		"barred":        {"GRANT SELECT ON bait TO LOGIN, GROUP_ro", "ALTER DATABASE NEIGHBOUR ALLOW_CONNECTIONS false"},
		"shared-login":  {"GRANT CONNECT ON DATABASE NEIGHBOUR TO LOGIN"},
		"shared-group":  {"GRANT CONNECT ON DATABASE NEIGHBOUR TO GROUP_rw, GROUP_ro, GROUP"},
		"not-connected": {"GRANT SELECT ON bait TO LOGIN", "REVOKE CONNECT ON DATABASE NEIGHBOUR FROM NEIGHBOUR, PUBLIC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, record := madeApp(t, "victim-"+name)
			neighbour, other := madeApp(t, "neighbour-"+name)
			quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
			names := strings.NewReplacer("NEIGHBOUR", quoted(neighbour.tenant.Database), "GROUP_rw", quoted(app.tenant.ReadWrite),
				"GROUP_ro", quoted(app.tenant.ReadOnly), "GROUP", quoted(app.tenant.Owner), "LOGIN", quoted(record.Username))
			inside, outside := connect(t, neighbour.tenant.Database, other), connect(t, "postgres", other)
			execute(t, inside, "CREATE TABLE bait ()")
			for _, statement := range harm {
				on := inside
				if strings.HasPrefix(statement, "ALTER DATABASE") {
					on = outside
				}
				execute(t, on, names.Replace(statement))
			}
			app.isDeleted(t, record.Username)
			neighbour.logins.DropOwned = true
			neighbour.isDeleted(t, other.Username)
		})
	}
}

// isDeleted expects that the login and the tenant can be deleted in time.
func (a app) isDeleted(t *testing.T, username string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deletedWithin)
	defer cancel()
	a.tenant.DropDatabase = true
	if err := errors.Join(a.logins.Delete(ctx, a.mark, username), a.tenant.Delete(ctx, a.mark)); err != nil {
		t.Error(err)
	}
	if left := leftOf(t, a); left != 0 {
		t.Errorf("there is %d left", left)
	}
}

// A session that is not a tenant's is not ended. The error names it, and the deletion goes on when it has ended.
func TestASessionOfOthersThatHoldsUpADeletionIsNamed(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "named")
	session := superuser(t, "postgres")
	defer func() { _ = session.Close(context.Background()) }()
	execute(t, session, "BEGIN", "GRANT SELECT ON pg_class TO t_named_web_a")
	err := app.logins.Delete(t.Context(), app.mark, record.Username)
	want := fmt.Sprintf("session %d of role super in database postgres holds", session.PgConn().PID())
	if !errors.Is(err, postgres.ErrLocked) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	execute(t, session, "ROLLBACK")
	if err := app.logins.Delete(t.Context(), app.mark, record.Username); err != nil {
		t.Error(err)
	}
}
