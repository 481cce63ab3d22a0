package postgres_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// hostileGrants are what a tenant can do so that rights of PUBLIC stay when they are revoked. NAME is the database and its owner, LOGIN the login of an
// app, OTHER the owner of another tenant's database.
func hostileGrants() map[string][]string {
	return map[string][]string{
		"a login grants": {
			"GRANT CONNECT, TEMPORARY ON DATABASE NAME TO LOGIN WITH GRANT OPTION",
			"SET ROLE NONE", "GRANT CONNECT ON DATABASE NAME TO PUBLIC",
		},
		"a login grants, and its option is gone": {
			"GRANT CONNECT, CREATE ON DATABASE NAME TO LOGIN WITH GRANT OPTION", "SET ROLE NONE",
			"GRANT CONNECT, CREATE ON DATABASE NAME TO PUBLIC", "RESET ROLE", "REVOKE GRANT OPTION FOR ALL ON DATABASE NAME FROM LOGIN",
		},
		"the administrator could have granted": {"GRANT ALL ON DATABASE NAME TO admin WITH GRANT OPTION", "GRANT CONNECT ON DATABASE NAME TO PUBLIC"},
		"another tenant could have granted":    {"GRANT ALL ON DATABASE NAME TO OTHER WITH GRANT OPTION", "GRANT CONNECT ON DATABASE NAME TO PUBLIC"},
		"a login grants the schema": {
			"GRANT CREATE ON SCHEMA public TO LOGIN WITH GRANT OPTION", "SET ROLE NONE", "GRANT CREATE ON SCHEMA public TO PUBLIC",
		},
		"the administrator could have granted the schema": {
			"GRANT ALL ON SCHEMA public TO admin WITH GRANT OPTION", "GRANT CREATE ON SCHEMA public TO PUBLIC",
		},
		"the owner could have granted the schema": {"GRANT ALL ON SCHEMA public TO NAME WITH GRANT OPTION", "GRANT CREATE ON SCHEMA public TO PUBLIC"},
		"the schema belongs to a login": {
			"SET ROLE NONE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT ALL ON SCHEMA public TO PUBLIC",
		},
		"the schema belongs to a login, and others have the option": {
			"SET ROLE NONE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT ALL ON SCHEMA public TO admin, NAME, OTHER WITH GRANT OPTION",
			"GRANT ALL ON SCHEMA public TO PUBLIC",
		},
	}
}

// A tenant can let everyone in, through each role to which it can give the option to grant. That is taken back at once.
func TestWhatATenantGrantsToEveryoneIsTakenBack(t *testing.T) {
	t.Parallel()
	app, other, record := grantsApps(t, "grants")
	for name, harm := range hostileGrants() {
		app.grants(t, record, other, harm)
		app.convergesOnce(t, record, name)
	}
}

// No order of grants among the roles that a tenant knows keeps a convergence from its end.
func TestNoChainOfGrantsKeepsATenantFromConverging(t *testing.T) {
	t.Parallel()
	app, other, record := grantsApps(t, "grantchain")
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	const chains = 30
	chance := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[chance.IntN(len(from))] }
	executed := 0
	for range chains {
		var harm []string
		for range 2 + chance.IntN(12) {
			on := pick("DATABASE NAME", "DATABASE NAME", "SCHEMA public")
			role := pick("PUBLIC", "admin", "NAME", "NAME_rw", "NAME_ro", "LOGIN", "OTHER")
			option := ""
			if role != "PUBLIC" {
				option = pick("", " WITH GRANT OPTION", " WITH GRANT OPTION")
			}
			harm = append(harm, pick("SET ROLE NONE", "SET ROLE NAME"), pick(
				"GRANT ALL ON "+on+" TO "+role+option, "GRANT ALL ON "+on+" TO "+role+option, "GRANT CREATE ON "+on+" TO "+role+option,
				"REVOKE ALL ON "+on+" FROM "+role+" CASCADE", "REVOKE GRANT OPTION FOR ALL ON "+on+" FROM "+role+" CASCADE",
				"DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "ALTER SCHEMA public OWNER TO CURRENT_USER",
				"REASSIGN OWNED BY NAME TO LOGIN", "REASSIGN OWNED BY LOGIN TO NAME", "ALTER SCHEMA public OWNER TO pg_database_owner",
			))
		}
		executed += app.grants(t, record, other, harm)
		app.convergesOnce(t, record, strings.Join(harm, "; "))
		if t.Failed() {
			return
		}
	}
	if executed < 2*chains {
		t.Errorf("only %d statements succeeded", executed)
	}
}

// grantsApps returns the app of a tenant with its login, and the owner of another tenant's database.
func grantsApps(t *testing.T, tenant string) (app, string, credential.Record) {
	t.Helper()
	other, _ := madeApp(t, tenant+"-other")
	made, record := madeApp(t, tenant)
	return made, other.tenant.Owner, record
}

// grants executes statements in one session of a login, and returns how many of them succeeded.
func (a app) grants(t *testing.T, record credential.Record, other string, statements []string) (succeeded int) {
	t.Helper()
	session := connect(t, a.tenant.Database, record)
	defer func() { _ = session.Close(t.Context()) }()
	for _, one := range statements {
		_, err := session.Exec(t.Context(), strings.NewReplacer("NAME", a.tenant.Owner, "LOGIN", record.Username, "OTHER", `"`+other+`"`).Replace(one))
		if err == nil && !strings.Contains(one, "SET ROLE") {
			succeeded++
		}
	}
	return succeeded
}

// convergesOnce expects that nothing is left to correct after one convergence.
func (a app) convergesOnce(t *testing.T, record credential.Record, name string) {
	t.Helper()
	if _, err := a.tenant.Converge(t.Context(), a.mark); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if wrote, err := a.tenant.Converge(t.Context(), a.mark); err != nil || wrote {
		t.Errorf("%s: the second time it wrote: %t, %v", name, wrote, err)
	}
	if state, err := a.logins.Observe(t.Context(), a.mark, record.Username, record.Password); err != nil || state != credential.Accepted {
		t.Errorf("%s: the login is %q, %v", name, state, err)
	}
	for _, what := range []string{
		"SELECT count(*) FROM pg_database, aclexplode(datacl) WHERE datname = current_database() AND grantee = 0",
		"SELECT count(*) FROM pg_namespace, aclexplode(nspacl) WHERE nspname = 'public' AND grantee = 0 AND privilege_type = 'CREATE'",
	} {
		if given := askIn[int](t, a.tenant.Database, what); given > 0 {
			t.Errorf("%s: PUBLIC still has %d rights: %s", name, given, what)
		}
	}
}
