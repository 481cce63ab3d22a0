package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// awkward is something that a restore must not lose in silence, and that must not become a way to the rights of the superuser.
type awkward struct {
	title string
	// sql is what the superuser executes in the original. Statements of the app begin after "set role app".
	sql string
	// query returns the same in the copy as in the original.
	query string
	// missing is what the restore says is missing, a line each.
	missing string
}

// awkwardContents are in one backup. The functions of the app find each other only with its search_path, which a dump leaves empty.
func awkwardContents() []awkward {
	return slices.Concat(functionsWithoutSchemas(), propertiesOfTheDatabase(), matterForSuperusers())
}

func functionsWithoutSchemas() []awkward {
	return []awkward{
		{
			title: "an index",
			sql: "set role app; create function twice(int) returns int language sql immutable as 'select $1 * 2'; " +
				"create function four(int) returns int language sql immutable as 'select twice(twice($1))'; " +
				"create table indexed (n int); insert into indexed values (1), (2); create index indexed_four on indexed (four(n))",
			query: "select sum(n) from indexed, pg_indexes where indexname = 'indexed_four'",
		},
		{
			title: "a constraint",
			sql:   "set role app; create table checked (n int check (four(n) > 0)); insert into checked values (7)",
			query: "select n from checked",
		},
		{
			title: "a generated column",
			sql:   "set role app; create table generated (n int, m int generated always as (four(n)) stored); insert into generated values (3)",
			query: "select n, m from generated",
		},
		{
			title: "partitions and a foreign key",
			sql: "set role app; create table split (n int primary key check (four(n) > 0)) partition by range (n); " +
				"create table split_1 partition of split for values from (1) to (9); insert into split values (1); " +
				"create table referring (n int references split); insert into referring values (1)",
			query: "select split.tableoid::regclass, split.n, referring.n from split, referring",
		},
		{
			title: "a materialized view",
			sql:   "set role app; create materialized view quadruple as select four(n) from indexed",
			query: "select * from quadruple order by 1",
		},
		{title: "no function is altered in the end", query: "select proname, proconfig from pg_proc where proname in ('twice', 'four') order by 1"},
	}
}

func propertiesOfTheDatabase() []awkward {
	return []awkward{
		{
			title: "an operator that pretends to be one of PostgreSQL",
			sql: "set role app; create function steal(name, text) returns boolean language plpgsql as $$begin raise 'executed as %', current_user; end$$; " +
				"create operator !~~ (leftarg = name, rightarg = text, function = steal); create operator !~ (leftarg = name, rightarg = text, function = steal); " +
				"alter database app set search_path = public, ext, pg_catalog",
			query: "select count(*) from pg_operator where oprcode = 'steal'::regproc",
		},
		{
			title: "large objects",
			sql:   "set role app; select lo_from_bytea(4711, 'large'); grant select on large object 4711 to public",
			query: "select convert_from(lo_get(4711), 'utf8'), lomacl from pg_largeobject_metadata",
		},
		{
			title: "settings of the role and of the database",
			sql: "alter role app set work_mem = '9MB'; alter role app in database app set statement_timeout = '1ms'; " +
				"alter database app set default_transaction_read_only = on; alter database app set default_text_search_config = 'pg_catalog.german'",
			query: "select one from pg_db_role_setting, unnest(setconfig) as one where (setdatabase <> 0 or setrole = 'app'::regrole) and one <> 'log_statement=all' order by 1",
		},
		{
			title: "rights and the comment of the database",
			sql: "create role reading; revoke all on database app from public; grant connect on database app to reading with grant option; " +
				"comment on database app is 'of ''all'''",
			query: "select datacl, shobj_description(oid, 'pg_database') from pg_database where datname = 'app'",
		},
		{
			title: "a trusted extension",
			sql:   "create schema ext authorization app; create extension hstore schema ext",
			query: "select nspname from pg_extension join pg_namespace n on n.oid = extnamespace where extname = 'hstore'",
		},
		{
			title: "an extension that the operator may create",
			sql:   "create extension bloom",
			query: "select extowner::regrole from pg_extension where extname = 'bloom'",
		},
	}
}

func matterForSuperusers() []awkward {
	return []awkward{
		{
			title:   "rows of tables of an extension, as PostGIS has them",
			sql:     "create extension einmal_lists; insert into filled values (4326)",
			query:   "select relowner::regrole from pg_class where relname in ('empty', 'filled')",
			missing: "TABLE DATA public filled",
		},
		{
			title:   "an extension that the operator may not create, and its rows",
			sql:     "create extension einmal_jobs; insert into jobs.job default values",
			missing: "EXTENSION - einmal_jobs\nTABLE DATA jobs job\nSEQUENCE SET jobs job_n_seq",
		},
		{title: "another extension", sql: "create extension pageinspect", missing: "EXTENSION - pageinspect"},
		{title: "a setting", sql: "alter role app set log_statement = 'all'", missing: "SETTING log_statement of app"},
		{
			title:   "an event trigger",
			sql:     "create function noted() returns event_trigger language plpgsql as 'begin end'; create event trigger noted on ddl_command_end execute function noted()",
			missing: "EVENT TRIGGER - noted",
		},
		{title: "a publication of all tables", sql: "create publication everything for all tables", missing: "PUBLICATION - everything"},
		{
			title:   "a function in C",
			sql:     "create function in_c(double precision) returns double precision language internal as 'dsqrt'",
			missing: "FUNCTION public in_c(double precision)",
		},
		{title: "an extension whose text is a command", sql: "create extension pg_trgm schema ext", missing: "EXTENSION - pg_trgm"},
	}
}

// A backup with what a restore often fails at becomes a database that has all rows, and the restore names what is missing. The superuser executes nothing from the
// backup, and a backup executes nothing from the database. A database that lacks rows is not complete: its restore fails, and names the tables. What an earlier restore of the
// same Pod has left does not count.
func TestAnAwkwardBackupIsRestored(t *testing.T) {
	p := newPod(t, "")
	p.addExtension("einmal_lists", "create table empty (n int); create table filled (n int); "+
		"select pg_extension_config_dump('empty', ''); select pg_extension_config_dump('filled', '');\n")
	p.addExtension("einmal_jobs", "create schema jobs; create table jobs.job (n serial); "+
		"select pg_extension_config_dump('jobs.job', ''); select pg_extension_config_dump('jobs.job_n_seq', '');\n")
	end := p.createOriginal()
	for _, one := range awkwardContents() {
		p.changeApp(one.sql)
	}
	want := p.answers()
	backup := p.backUp()
	command := "COPY (SELECT 1) TO PROGRAM 'touch forged';"
	p.forge(backup, "CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA ext;\n", command)
	p.violate()
	p.backUp()
	end()

	said, err := p.restore("RESTORE=newest")
	if err == nil || !strings.HasPrefix(said, "RestoreFailed: data of the backup ") || !strings.Contains(said, "TABLE DATA public violating") {
		t.Errorf("a restore without rows says %q, and ends with %v", said, err)
	}
	if fileExists(p.dir + "/data/pgdata") {
		t.Error("there is a database that lacks rows")
	}
	p.place("create.log", "08006 FATAL:  connection to client lost\n") // As a restore leaves it whose pg_restore was killed.
	said, err = p.restore("RESTORE="+filepath.Base(backup), "EXTENSIONS=postgis bloom einmal_lists")
	if err != nil {
		t.Fatal(err)
	}
	p.expectRestored(said, filepath.Base(backup))
	for _, folder := range []string{"", "data/pgdata"} {
		if fileExists(filepath.Join(p.dir, folder, "forged")) {
			t.Errorf("the superuser has executed %s", command)
		}
	}
	defer p.startForAll()()
	for title, got := range p.answers() {
		if diff := cmp.Diff(want[title], got); diff != "" {
			t.Errorf("%s (-original +copy):\n%s", title, diff)
		}
	}
}

// addExtension makes an extension available on this machine until the test ends. It needs the rights to write where the package of PostgreSQL has its own.
func (p pod) addExtension(name, script string) {
	p.Helper()
	out, err := p.command("pg_config", "--sharedir").Output()
	if err != nil {
		p.Fatal(err)
	}
	folder := strings.TrimSpace(string(out)) + "/extension/"
	for file, text := range map[string]string{name + ".control": "default_version = '1'\n", name + "--1.sql": script} {
		if err := os.WriteFile(folder+file, []byte(text), 0o644); err != nil {
			p.Fatalf("add an extension: %v; run this test as root", err)
		}
		p.Cleanup(func() { _ = os.Remove(folder + file) })
	}
}

// violate makes a row that violates the constraint of its table.
func (p pod) violate() {
	p.Helper()
	const small = "create or replace function small(int) returns boolean language sql as 'select $1 < %d'; "
	p.changeApp("set role app; " + fmt.Sprintf(small, 10) + "create table violating (n int check (small(n))); insert into violating values (7); " + fmt.Sprintf(small, 5))
}

// expectRestored expects what a container says that has restored a backup.
func (p pod) expectRestored(said, backup string) {
	p.Helper()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	missing := lines[1:]
	slices.Sort(missing)
	var want []string
	for _, one := range awkwardContents() {
		if one.missing != "" {
			want = append(want, strings.Split(one.missing, "\n")...)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, missing); diff != "" || lines[0] != "Restored: "+backup {
		p.Errorf("%s, and what is missing (-want +got):\n%s", lines[0], diff)
	}
	log, err := os.ReadFile(p.dir + "/data/restore.log")
	if err != nil || !strings.Contains(string(log), `permission denied to create extension "pageinspect"`) {
		p.Errorf("the log of the restore, %v:\n%s", err, log)
	}
}

// createOriginal creates a database as server.sh does, starts it, and returns what ends it.
func (p pod) createOriginal() (end func()) {
	p.Helper()
	for _, name := range []string{"app", "monitor", "replication", "backup"} {
		p.place("secret/"+name, name)
	}
	p.place("pod/annotations", "database.einmal.dev/grant=\"u 1 initdb\"\n")
	p.place("backup/lock", "")
	p.run(p.command("sh", p.dir+"/config/server.sh", "data"), "")
	return p.startForAll()
}

// startForAll starts the server, to which every user of this machine can log in, and returns what ends it.
func (p pod) startForAll() (end func()) {
	p.Helper()
	p.place("all.conf", "local all all trust\n")
	arguments := []string{"--pgdata", p.dir + "/data/pgdata", "--wait", "--silent", "--log", p.dir + "/server.log"}
	options := fmt.Sprintf("-c hba_file=%[1]s/all.conf -c listen_addresses='' -c unix_socket_directories=%[1]s/run", p.dir)
	p.run(p.command("pg_ctl", append(arguments, "--options", options, "start")...), "")
	return func() { p.run(p.command("pg_ctl", append(arguments[:4:4], "--mode", "fast", "stop")...), "") }
}

// inApp executes statements as the superuser in the database of the app, and returns what the last one returns.
func (p pod) inApp(statements string) string {
	p.Helper()
	out, err := p.command("psql", "-qAtX", "--dbname", "app", "--command", statements).CombinedOutput()
	if err != nil {
		p.Fatalf("%s: %v: %s", statements, err, out)
	}
	return strings.TrimSpace(string(out))
}

// changeApp executes statements as the superuser in the database of the app, whose transactions are read-only by default.
func (p pod) changeApp(statements string) {
	p.Helper()
	p.inApp("set transaction read write; set search_path = public, ext; " + statements)
}

// answers returns the results of all queries by their titles.
func (p pod) answers() map[string]string {
	p.Helper()
	all := make(map[string]string)
	for _, one := range awkwardContents() {
		if one.query != "" {
			all[one.title] = p.inApp(one.query)
		}
	}
	return all
}

// backUp makes a backup and returns its folder.
func (p pod) backUp() string {
	p.Helper()
	command := p.command("sh", p.dir+"/config/backup.sh")
	command.Env = append(command.Env, "PRIMARY="+p.dir+"/run", "PGUSER=einmal_backup", "PGDATABASE=app")
	p.run(command, "")
	made, err := filepath.Glob(p.dir + "/backup/2*Z")
	if err != nil || len(made) == 0 {
		p.Fatalf("the backups are %v, %v", made, err)
	}
	return slices.Max(made)
}

// forge replaces a text in the dump of a backup by a shorter one, and corrects the checksums, as a person with access to the volume can.
func (p pod) forge(backup, old, text string) {
	p.Helper()
	name := backup + "/dump"
	dump, err := os.ReadFile(name)
	if err != nil {
		p.Fatal(err)
	}
	if len(text) > len(old) || bytes.Count(dump, []byte(old)) != 1 {
		p.Fatalf("the dump does not have %q once, or %q is longer", old, text)
	}
	dump = bytes.Replace(dump, []byte(old), []byte(text+strings.Repeat(" ", len(old)-len(text))), 1)
	if err := os.WriteFile(name, dump, 0o600); err != nil {
		p.Fatal(err)
	}
	command := p.command("sh", "-c", "sha256sum dump about roles >sha256")
	command.Dir = backup
	p.run(command, "")
}

// restore creates the database again with a backup, and returns what the container says at its end.
func (p pod) restore(environment ...string) (string, error) {
	p.Helper()
	if err := os.RemoveAll(p.dir + "/data/pgdata"); err != nil {
		p.Fatal(err)
	}
	command := p.command("sh", p.dir+"/config/server.sh", "data")
	command.Env = append(command.Env, append(environment, "RESTORE_FROM=claim")...)
	out, failed := command.CombinedOutput()
	if failed != nil { // The end of a container ends its server too.
		_ = p.command("pg_ctl", "--pgdata", p.dir+"/data/pgdata.new", "--mode", "immediate", "stop").Run() // It may not run.
	}
	said, err := os.ReadFile(p.dir + "/said")
	if err != nil || failed != nil && len(said) == 0 {
		p.Fatalf("%v, %v: %s", failed, err, out)
	}
	p.Logf("the restore has said:\n%s", out)
	return string(said), failed
}
