package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// Each refusal of the server has the remedy that ends it. The messages are those of PostgreSQL 15 to 18.
func TestEachRefusalHasItsOwnRemedy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		message, detail, routine string
		kind                     error
		remedy                   string
	}{
		{"must be a superuser to terminate superuser process", "", "TerminateOtherDBBackends", postgres.ErrInUse, "end the session yourself"},
		{
			"permission denied to terminate process", "Only roles with the SUPERUSER attribute may terminate processes of roles with the SUPERUSER attribute.",
			"TerminateOtherDBBackends", postgres.ErrInUse, "end the session yourself",
		},
		{
			"permission denied to terminate process",
			`Only roles with privileges of the role whose process is being terminated or with privileges of the "pg_signal_backend" role may terminate this process.`,
			"pg_terminate_backend", postgres.ErrRights, "GRANT pg_signal_backend",
		},
		{"keine Berechtigung", "", "TerminateOtherDBBackends", postgres.ErrRights, "end the session yourself"},
		{"permission denied to finish prepared transaction", "", "LockGXact", postgres.ErrInUse, "ROLLBACK PREPARED"},
		{"permission denied to create role", "Only roles with the CREATEROLE attribute may create roles.", "CreateRole", postgres.ErrRights, "grant it CREATEROLE ("},
		{"permission denied to create database", "", "createdb", postgres.ErrRights, "grant it CREATEDB"},
		{`permission denied to set parameter "log_statement"`, "", "set_config_option", postgres.ErrRights, "GRANT SET ON PARAMETER"},
		{`must be able to SET ROLE "t_a"`, "", "check_can_set_role", postgres.ErrRights, "run GRANT role TO the administrator"},
		{"must be superuser to alter superuser roles or change superuser attribute", "", "AlterRole", postgres.ErrRights, "only a superuser can change"},
		{"must be owner of database t_a", "", "aclcheck_error", postgres.ErrRights, "the role that owns the object"},
		{"permission denied for schema public", "", "aclcheck_error", postgres.ErrRights, "the right on the object"},
		{
			"permission denied to alter role", `Only roles with the CREATEROLE attribute and the ADMIN option on role "t_superuser" may alter this role.`,
			"AlterRole", postgres.ErrRights, "WITH ADMIN OPTION",
		},
	} {
		err := postgres.Explain(&pgconn.PgError{Code: "42501", Severity: "ERROR", Message: test.message, Detail: test.detail, Routine: test.routine})
		text, _, _ := strings.Cut(err.Error(), "ERROR")
		if !errors.Is(err, test.kind) || !strings.Contains(text, test.remedy) {
			t.Errorf("%s: %v, want %s", test.message, err, test.remedy)
		}
		if errors.Is(test.kind, postgres.ErrInUse) && errors.Is(err, postgres.ErrRights) {
			t.Errorf("%s: a right is missing", test.message)
		}
	}
}
