package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// setting is a setting that every role may change.
type setting struct {
	name, kind string
	low, high  float64
	words      []string
}

// settings returns the settings that a session may change.
func settings(ctx context.Context, session *pgx.Conn) ([]setting, error) {
	rows, err := session.Query(ctx, `SELECT name, vartype, coalesce(min_val, '0')::float8, coalesce(max_val, '0')::float8, coalesce(enumvals, '{}')
		FROM pg_settings WHERE context = 'user'`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (one setting, err error) {
		return one, row.Scan(&one.name, &one.kind, &one.low, &one.high, &one.words)
	})
}

// ownPassword is the password that attackers set.
const ownPassword = "the tenant knows this"

// attacker makes up statements that an app may execute, from a source of chance.
type attacker struct {
	chance   *rand.Rand
	settings []setting
	// database is the name of the tenant's database and of the role that owns it. others are roles of other tenants.
	database string
	others   []string
}

func (a *attacker) pick(from ...string) string { return from[a.chance.IntN(len(from))] }

func (a *attacker) name() string { return fmt.Sprintf("x%d", a.chance.IntN(12)) }

// value returns a value of a setting as SQL, sometimes one that is not valid, sometimes a large one.
func (a *attacker) value(of setting) string {
	switch {
	case of.name == "statement_timeout" || of.name == "lock_timeout":
		return a.pick("0", "1", "100")
	case a.chance.IntN(40) == 0:
		return "'" + strings.Repeat("x", 1<<a.chance.IntN(22)) + "'"
	case len(of.words) > 0:
		return "'" + a.pick(of.words...) + "'"
	case of.kind == "bool":
		return a.pick("on", "off")
	case of.kind == "integer" || of.kind == "real":
		return fmt.Sprintf("'%d'", int64(of.low+a.chance.Float64()*min(of.high-of.low, 100_000)))
	}
	return a.pick("''", "'nope'", "'pg_temp'", "DEFAULT")
}

// set returns a statement that changes a setting of the session, the login, the database, or of the login in the database.
func (a *attacker) set() string {
	of := a.settings[a.chance.IntN(len(a.settings))]
	where := a.pick("", "", "ALTER ROLE CURRENT_USER ", `ALTER DATABASE "`+a.database+`" `, `ALTER ROLE CURRENT_USER IN DATABASE "`+a.database+`" `)
	if a.chance.IntN(8) == 0 && where != "" {
		return where + "RESET " + a.pick(of.name, "ALL")
	}
	return where + "SET " + of.name + " = " + a.value(of)
}

// password returns a statement that changes the password of the login itself.
func (a *attacker) password() string {
	key := strings.Repeat("A", 43) + "="
	salt := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 1<<a.chance.IntN(17))))
	return "ALTER ROLE CURRENT_USER PASSWORD " + a.pick("'"+ownPassword+"'", "'"+ownPassword+"'", "NULL", "'md5"+strings.Repeat("0", 32)+"'",
		fmt.Sprintf("'SCRAM-SHA-256$%d:%s$%s:%s'", 1+a.chance.IntN(500_000), salt, key, key))
}

// define returns a statement that defines or drops something in the database.
func (a *attacker) define() string {
	schema := a.pick("public", "lure", `"`+a.database+`"`)
	return a.pick(
		"CREATE SCHEMA "+schema, "CREATE TABLE "+schema+"."+a.name()+" (id int, text text)", "DROP TABLE "+a.name()+" CASCADE",
		"CREATE INDEX ON "+a.name()+" (id)", "ALTER TABLE "+a.name()+" ADD COLUMN c"+a.name()+" int", "CREATE TEMPORARY TABLE t"+a.name()+" (id int)",
		"CREATE VIEW v"+a.name()+" AS SELECT * FROM "+a.name(), "CREATE SEQUENCE s"+a.name(), "DROP OWNED BY CURRENT_USER",
		"CREATE FUNCTION "+schema+".left(text, int) RETURNS text LANGUAGE sql AS 'SELECT NULL'",
		"CREATE FUNCTION "+schema+".count() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(100); RETURN 1; END $$",
		"CREATE OPERATOR "+schema+".= (LEFTARG = name, RIGHTARG = text, FUNCTION = nameeqtext)",
		"CREATE DOMAIN "+schema+"."+a.pick("name", "text", "bool")+" AS int", "CREATE TYPE "+schema+"."+a.name()+" AS ENUM ('a')",
		"CREATE CAST (json AS int) WITH INOUT", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
		"INSERT INTO "+a.name()+" SELECT n, 'x' FROM generate_series(1, 1000) n", "SELECT lo_put(lo_create(0), 0, repeat('x', 10000)::bytea)",
		"COMMENT ON DATABASE \""+a.database+"\" IS '"+a.owner()+"'", "CREATE EXTENSION plpgsql", "ALTER DATABASE \""+a.database+"\" RENAME TO renamed",
	)
}

func (a *attacker) owner() string { return a.pick("tenants.example.com/", "another/owner", "") }

// give returns a statement that changes roles and rights.
func (a *attacker) give() string {
	to := a.pick(append(slices.Clone(a.others), "PUBLIC", "CURRENT_USER", `"`+a.database+`"`, `"`+a.database+`_rw"`)...)
	return a.pick(
		"GRANT ALL ON DATABASE \""+a.database+"\" TO "+to+a.pick("", " WITH GRANT OPTION"), "REVOKE ALL ON DATABASE \""+a.database+"\" FROM "+to+" CASCADE",
		"GRANT ALL ON SCHEMA public TO "+to+a.pick("", " WITH GRANT OPTION"), "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+to,
		"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO "+to, "REASSIGN OWNED BY \""+a.database+"\" TO CURRENT_USER", "REASSIGN OWNED BY CURRENT_USER TO \""+a.database+"\"",
		"GRANT \""+a.database+"\" TO "+to, "ALTER DATABASE \""+a.database+"\" OWNER TO CURRENT_USER", "SET ROLE NONE", "SET ROLE \""+a.database+"_ro\"", "RESET ROLE",
		"ALTER DATABASE \""+a.database+"\" CONNECTION LIMIT "+a.pick("0", "1", "-1"), "ALTER DATABASE \""+a.database+"\" ALLOW_CONNECTIONS "+a.pick("true", "false"),
		"ALTER DATABASE \""+a.database+"\" IS_TEMPLATE "+a.pick("true", "false"), "ALTER ROLE CURRENT_USER CONNECTION LIMIT 1", "DROP ROLE CURRENT_USER",
		"DROP OWNED BY \""+a.database+"\"", "ALTER ROLE CURRENT_USER RENAME TO renamed",
	)
}

// hold returns statements that hold locks or keep the server busy.
func (a *attacker) hold() string {
	return a.pick(
		"BEGIN", "BEGIN", "SELECT count(*) FROM pg_class", "SELECT count(*) FROM pg_roles", "VACUUM FULL pg_class", "VACUUM FULL pg_attribute", "REINDEX SYSTEM \""+a.database+"\"",
		"CLUSTER pg_class USING pg_class_oid_index", "LOCK TABLE "+a.name()+" IN ACCESS EXCLUSIVE MODE", "SELECT pg_advisory_lock(1)", "SELECT pg_sleep(20)",
		"LISTEN "+a.name(), "NOTIFY "+a.name()+", '"+strings.Repeat("n", 1+a.chance.IntN(7000))+"'", "DECLARE c"+a.name()+" CURSOR WITH HOLD FOR SELECT * FROM pg_class",
		fmt.Sprintf("PREPARE TRANSACTION 'ça %d %d'", a.chance.IntN(1000), a.chance.IntN(1000)), "COMMIT", "ROLLBACK",
		"DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(0.001); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity", "SELECT repeat('x', 5000000)", "DISCARD ALL",
	)
}

// statement returns the next statement.
func (a *attacker) statement() string {
	switch chance := a.chance.IntN(100); {
	case chance < 30:
		return a.set()
	case chance < 40:
		return a.password()
	case chance < 60:
		return a.define()
	case chance < 80:
		return a.give()
	}
	return a.hold()
}
