package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// postgresScript creates the database at the first start. The name of the cluster is in the command lines of its processes.
const postgresScript = `[ -s $PGDATA/PG_VERSION ] || initdb --username=postgres --auth=trust --encoding=UTF8 --no-instructions
exec postgres -k /tmp -c cluster_name=%s`

// A database is a StatefulSet with a claim: it is killed, replaced and stopped, and keeps its data. OnRootMismatch keeps the kubelet from giving the
// group more rights to the files at each start, with which PostgreSQL does not run.
func TestNodeRunsPostgreSQL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := up(t, dir, "--node=real")
	buildPostgres(t, dir)
	c := inCluster{dir: dir, kubeconfig: u.kubeconfig}
	c.client, c.dynamic = clients(t, u.kubeconfig)
	name := filepath.Base(filepath.Dir(dir))
	c.create(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, selector: {matchLabels: {app: db}},
  template: {metadata: {labels: {app: db}}, spec: {securityContext: {runAsUser: 999, runAsGroup: 999, fsGroup: 999, fsGroupChangePolicy: OnRootMismatch}, containers: [{
    name: postgres, image: "%s", command: [sh, -ec, %q], env: [{name: PGDATA, value: /data/database}],
    readinessProbe: {exec: {command: [psql, -h, /tmp, -U, postgres, -c, select 1]}, periodSeconds: 1}, volumeMounts: [{name: data, mountPath: /data}]}]}},
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
		postgres, fmt.Sprintf(postgresScript, name)))
	c.awaitReady(t, "db-0")
	c.sql(t, "create table kept (n int); insert into kept values (42)", "")

	killPostgres(t, name)
	c.awaitRestart(t, "db-0")
	c.awaitReady(t, "db-0")
	c.sql(t, "select n from kept", "42")

	if r := run(t, dir, "kubectl", "delete", "pod", "db-0"); r.code != 0 {
		t.Errorf("delete: %+v", r)
	}
	eventually(t, func() error { return c.sqlOnce(t, "select n from kept", "42") })

	stopped(t, u)
	u = up(t, dir, "--node=real")
	c.client, c.dynamic = clients(t, u.kubeconfig)
	eventually(t, func() error { return c.sqlOnce(t, "select n from kept", "42") })
	stopped(t, u)
}

// sql runs a statement in the database, and compares its result.
func (c inCluster) sql(t *testing.T, statement, want string) {
	t.Helper()
	if err := c.sqlOnce(t, statement, want); err != nil {
		t.Error(err)
	}
}

func (c inCluster) sqlOnce(t *testing.T, statement, want string) error {
	t.Helper()
	r := run(t, c.dir, "kubectl", "exec", "db-0", "--", "psql", "-h", "/tmp", "-U", "postgres", "-qAtc", statement)
	if r.code != 0 || strings.TrimSpace(r.stdout) != want {
		return fmt.Errorf("%s: %+v", statement, r)
	}
	return nil
}

// killPostgres kills the first process of a database, as the kernel does when memory is short.
func killPostgres(t *testing.T, name string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "\x00cluster_name="+name+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no PostgreSQL %s runs", name)
}
