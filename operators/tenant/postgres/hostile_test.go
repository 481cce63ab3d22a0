package postgres_test

import (
	"testing"
)

// tenant-and-database.md §2, Details: a tenant owns its database, and can make functions there of the names that the admin calls. The admin
// calls none of them, whatever the database says of where to look first (CVE-2018-1058).
func TestATenantsFunctionsAreNotCalledByTheAdmin(t *testing.T) {
	t.Parallel()
	for name, lure := range map[string]string{
		"lure-path": `CREATE SCHEMA lure;
			CREATE FUNCTION lure.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
				EXECUTE 'CREATE ROLE "t_lure-path_taken"'; RETURN false; END $f$;
			ALTER DATABASE "t_lure-path" SET search_path = lure, pg_catalog`,
		"lure-overload": `CREATE FUNCTION public.json_build_object(text, json, text, json) RETURNS json LANGUAGE plpgsql AS $f$ BEGIN
				EXECUTE 'CREATE ROLE "t_lure-overload_taken"'; RETURN '{}'; END $f$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, record := madeApp(t, name)
			session := connect(t, app.tenant.Database, record)
			if _, err := session.Exec(t.Context(), lure); err != nil {
				t.Fatal(err)
			}
			if wrote, err := app.tenant.Converge(t.Context(), app.mark); err != nil || wrote {
				t.Errorf("it wrote: %t, %v", wrote, err)
			}
			if taken := ask[int](t, "SELECT count(*) FROM pg_roles WHERE rolname = $1", app.tenant.Owner+"_taken"); taken > 0 {
				t.Error("the admin has called the tenant's function: with it the tenant has the admin's rights")
			}
		})
	}
}
