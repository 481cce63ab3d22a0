package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// way is how an app holds up its revocation. LOGIN and OWNER stand for the names of its login and of its database.
type way struct {
	name string
	// before does something behind the tenant's back, such as a change of pg_hba.conf.
	before func(t *testing.T, of *hostile, leaked credential.Record)
	// first are the statements of a session that stays open, second that of another session, which is not waited for.
	first  []string
	second string
	// alone reports whether it is not tried beside attacks of other tenants, because it keeps a processor or the whole server busy.
	alone bool
}

// ownVerifier is a statement that gives the login itself a verifier for SCRAM.
func ownVerifier(iterations int, salt string) string {
	key := strings.Repeat("A", 43) + "="
	return fmt.Sprintf("ALTER ROLE CURRENT_USER PASSWORD 'SCRAM-SHA-256$%d:%s$%s:%s'", iterations, salt, key, key)
}

func ways() []way {
	const salt = "MDEyMzQ1Njc4OWFiY2RlZg=="
	large := func(name string, bytes int) []string {
		return []string{
			"SET ROLE NONE", fmt.Sprintf("SELECT set_config('%s', repeat('x', %d), false)", name, bytes), "ALTER ROLE CURRENT_USER SET " + name + " FROM CURRENT",
		}
	}
	return []way{
		{name: "nothing", first: []string{"SELECT 1"}},
		{name: "verifier with 10,000,001 iterations", alone: true, first: []string{"SET ROLE NONE", ownVerifier(10_000_001, salt)}},
		{name: "salt of 180 kB", first: []string{"SET ROLE NONE", ownVerifier(4096, strings.Repeat("A", 240_000))}},
		{name: "md5 verifier, md5 in pg_hba.conf", before: md5, alone: true, first: []string{
			"SET ROLE NONE", "SET password_encryption = md5", "ALTER ROLE CURRENT_USER PASSWORD 'the tenant knows this'",
		}},
		{name: "setting of 100 MB", first: large("search_path", 100_000_000)},
		{name: "setting of 25 MB, a warning at each login", first: []string{
			"SET ROLE NONE", "ALTER ROLE CURRENT_USER SET default_text_search_config = '" + strings.Repeat("x", 25_000_000) + "'",
		}},
		{name: "VACUUM FULL behind a transaction", first: []string{"BEGIN", "SELECT count(*) FROM pg_class"}, second: "VACUUM FULL pg_class"},
		{name: "owner of the database, which it locks", first: []string{
			"SET ROLE NONE", `REASSIGN OWNED BY "OWNER" TO "LOGIN"`, "BEGIN", `ALTER DATABASE "OWNER" CONNECTION LIMIT 50`,
		}},
		{name: "prepared transaction, name not in ASCII", first: []string{
			`ALTER DATABASE "OWNER" SET client_encoding = LATIN1`, "SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER SET work_mem = '1MB'",
			"PREPARE TRANSACTION 'ça LOGIN'",
		}},
		{name: "session that computes a verifier", alone: true, first: []string{"SET ROLE NONE"}, second: ownVerifier(40_000_000, salt)},
		{name: "own password in an open transaction", first: []string{"SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER PASSWORD 'the tenant knows this'"}},
		{name: "database that allows no connections", first: []string{"CREATE TABLE notes ()"}, second: `ALTER DATABASE "OWNER" ALLOW_CONNECTIONS false`},
		{name: "22,000 tables of the login", alone: true, first: append([]string{`GRANT CREATE ON SCHEMA public TO "LOGIN"`, "SET ROLE NONE"}, tables(22_000)...)},
	}
}

// tables returns statements that create tables, a few in each transaction, which needs a lock for each.
func tables(number int) (all []string) {
	const each = 2000
	for first := 0; first < number; first += each {
		all = append(all, fmt.Sprintf("DO $$ BEGIN FOR i IN %d..%d LOOP EXECUTE 'CREATE TABLE public.t' || i || ' ()'; END LOOP; END $$", first, first+each-1))
	}
	return all
}

// md5 lets the login of the app log in with md5.
func md5(t *testing.T, of *hostile, leaked credential.Record) {
	t.Helper()
	file := filepath.Join(of.postgres.Dir, "data", "pg_hba.conf")
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("host all "+leaked.Username+" 127.0.0.1/32 md5\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	of.sql(t, "SELECT pg_reload_conf()")
}

// Whatever an app does with its leaked password to hold it, the password is rejected in time, the status never says that the tenant is ready while the app
// cannot log in, and the tenant can be deleted. The log has the times.
func TestEachWayToHoldAPasswordFails(t *testing.T) {
	s := startStage(t)
	s.start(t)
	for i, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			h := &hostile{stage: s, name: fmt.Sprintf("way-%d", i)}
			s.Kubectl(t, s.manifest(h.name, ", deletionPolicy: Delete, dropOwned: true"), "apply", "-f", "-")
			s.awaitPhase(t, h.name, v1.Ready)
			leaked, _ := h.credentials(t, h.name)
			h.hold(t, way, leaked)
			h.revokedDespite(t, leaked)
			begun := time.Now()
			s.Kubectl(t, "", "delete", "tenant", h.name, "--timeout=90s")
			t.Logf("deleted after %s", time.Since(begun).Round(10*time.Millisecond))
		})
	}
}

// hold does what the way says.
func (h *hostile) hold(t *testing.T, way way, leaked credential.Record) {
	t.Helper()
	if way.before != nil {
		way.before(t, h, leaked)
	}
	replaced := strings.NewReplacer("LOGIN", leaked.Username, "OWNER", names.Tenant{Name: h.name}.Database())
	connect := func(database string) *pgx.Conn {
		session, err := pgx.Connect(t.Context(), h.postgres.DSNOf(leaked.Username, leaked.Password.Reveal(), database))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { go session.Close(context.Background()) }) //nolint:errcheck // It may have ended.
		return session
	}
	first, second := connect(names.Tenant{Name: h.name}.Database()), connect("postgres")
	if !strings.HasPrefix(way.second, "ALTER DATABASE") {
		second = connect(names.Tenant{Name: h.name}.Database())
	}
	for _, statement := range way.first {
		if _, err := first.Exec(t.Context(), replaced.Replace(statement)); err != nil {
			if strings.Contains(err.Error(), "is too long") {
				t.Skip("since version 18, the server refuses a verifier of more than 512 bytes")
			}
			t.Fatalf("%.100s: %v", statement, err)
		}
	}
	if way.second != "" {
		if strings.HasPrefix(way.second, "ALTER ROLE") {
			_, _ = second.Exec(t.Context(), "SET ROLE NONE")
		}
		go func() { _, _ = second.Exec(context.WithoutCancel(t.Context()), replaced.Replace(way.second)) }()
		<-time.After(time.Second)
	}
}

// revokedDespite requests the revocation, and follows the server and the status until the app works and the tenant is ready, or for a minute.
func (h *hostile) revokedDespite(t *testing.T, leaked credential.Record) {
	t.Helper()
	begun := time.Now()
	h.request(t, 1)
	var rejected, works time.Duration
	var said []string
	for time.Since(begun) < time.Minute && (works == 0 || !strings.HasPrefix(said[len(said)-1], "True")) {
		now, _ := h.credentials(t, h.name)
		is := h.readiness(t)
		if len(said) == 0 || said[len(said)-1] != is {
			said = append(said, is)
			t.Logf("Ready is %s after %s", is, time.Since(begun).Round(10*time.Millisecond))
		}
		if rejected == 0 && !h.accepts(t, leaked) {
			rejected = time.Since(begun)
		}
		if works == 0 && now.Password != leaked.Password && h.logIn(t, h.name, now) == nil {
			works = time.Since(begun)
		}
		<-time.After(20 * time.Millisecond)
	}
	if !slices.ContainsFunc(said, func(one string) bool { return strings.HasPrefix(one, "False") }) {
		t.Errorf("the password was rejected, and Ready was %q all the time", said)
	}
	t.Logf("rejected after %s, the app works after %s", rejected.Round(10*time.Millisecond), works.Round(10*time.Millisecond))
	if rejected == 0 || rejected > hostileBound {
		t.Errorf("the password was rejected after %s", rejected)
	}
}

// readiness is the condition Ready.
func (h *hostile) readiness(t *testing.T) string {
	t.Helper()
	tenant := &v1.Tenant{}
	if err := h.Get(t.Context(), client.ObjectKey{Name: h.name}, tenant); err != nil {
		t.Fatal(err)
	}
	is := meta.FindStatusCondition(tenant.Status.Conditions, v1.ConditionReady)
	return string(is.Status) + " " + is.Reason
}
