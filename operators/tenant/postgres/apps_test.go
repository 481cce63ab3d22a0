package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// The server lists the apps of a tenant by the marks of their logins, and lists none of another tenant.
func TestAppsAreListedByTheirMarks(t *testing.T) {
	t.Parallel()
	listed := newApp(t, "listed")
	listed.converge(t)
	for tenant, apps := range map[string][]string{"listed": {"web", "job"}, "listed-too": {"other"}} {
		of := names.Tenant{Name: tenant}
		for _, name := range apps {
			app := of.App(name)
			record := listed.record(t, 1)
			record.Username = app.Login(1)
			logins := listed.logins // The logins work as roles of the tenant "listed" and are dropped with them.
			mark := listed.mark
			mark.Name = tenant + "/" + name
			if err := logins.Create(t.Context(), mark, record); err != nil {
				t.Fatal(err)
			}
		}
	}
	super(t, "postgres", "ALTER ROLE t_listed_job_a NOLOGIN", "CREATE ROLE t_listed_by_hand",
		"COMMENT ON ROLE t_listed_by_hand IS 'tenants.example.com@test//listed'")
	t.Cleanup(func() { dropAll(t, "t_listed-too") })
	apps, err := listed.server.Apps(t.Context(), listed.mark)
	if diff := cmp.Diff([]string{"job", "web"}, apps); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	other := credential.Owner{Operator: listed.mark.Operator, Name: "list"}
	if apps, err := listed.server.Apps(t.Context(), other); err != nil || len(apps) != 0 {
		t.Errorf("the apps of a tenant without logins are %q, %v", apps, err)
	}
	down, err := postgres.Open(postgres.Config{DSN: credential.NewPassword("postgres://admin:x@127.0.0.1:1/postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(down.Close)
	if apps, err := down.Apps(t.Context(), listed.mark); !errors.Is(err, postgres.ErrDown) || apps != nil {
		t.Errorf("a server that is down has the apps %q, %v", apps, err)
	}
}
