package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// small is a Database with the smallest volume that is accepted.
const small = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"small"},
	"spec":{"engine":"postgresql","version":"15","storage":"300Mi","replicas":2,"backupEnabled":false}}`

// rewrite writes ten times the size of the volume into the write-ahead log, and prints the percentage that is used at most.
const rewrite = `set -eu
ask() { psql -qAtX --dbname app --command "$1"; }
ask 'create table churn as select n, md5(n::text) as text from generate_series(1, 200000) n'
from=$(ask 'select pg_current_wal_lsn()')
until [ "$(ask "select pg_wal_lsn_diff(pg_current_wal_lsn(), '$from') > 3 * 1024 * 1024 * 1024::bigint")" = t ]; do
	psql -qAtX --dbname app --command 'update churn set text = md5(text)' --command 'vacuum churn' >/dev/null
	df --output=pcent /data | tail -n 1
done | sort --numeric-sort | tail -n 1`

// The smallest volume is enough for a server whose apps write ten times its size, and for its standby. Another server has the shared memory that a join needs.
func TestNodeKeepsASmallVolumeUnderLoad(t *testing.T) {
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15")
	s := &started{realnode.Start(t, script, ready)}
	s.MustKubectl(t, "apply", "--filename", s.write(t, small))
	s.awaitReason(t, "small", "DatabaseReady")
	s.await(t, "database", "small", ".status.readyReplicas", "2")
	folders := func() string {
		return s.MustKubectl(t, "exec", "--namespace", "production", "small-0", "--", "du", "-sm", "/data/pgdata/base", "/data/pgdata/pg_wal", "/data/pgdata")
	}
	before := folders()
	used := s.MustKubectl(t, "exec", "--namespace", "production", "small-0", "--", "sh", "-c", rewrite)
	t.Logf("at most %s of the volume was used; the folders had, in MiB,\n%sand have\n%s", strings.TrimSpace(used), before, folders())

	s.await(t, "database", "small", `.status.conditions[?(@.type=="StandbysStreaming")].reason`, "Streaming")
	s.awaitReason(t, "small", "DatabaseReady")
	for _, pod := range []string{"small-0", "small-1"} {
		if log := s.MustKubectl(t, "logs", "--namespace", "production", pod); strings.Contains(log, "PANIC") || strings.Contains(log, "No space left") {
			t.Errorf("the log of %s:\n%s", pod, log)
		}
	}
	restarts := s.MustKubectl(t, "get", "pods", "--namespace", "production", "--selector", "database.einmal.dev/name=small", "--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if diff := cmp.Diff("0 0", restarts); diff != "" {
		t.Errorf("the servers were restarted (-want +got):\n%s", diff)
	}
	s.joins(t)
	t.Log(s.MustKubectl(t, "get", "database", "--namespace", "production", "small", "--output", `jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`))
}

// joins expects that the processes of a parallel join can share the memory that they may use: 64 MB each, and twice as much for a hash.
func (s *started) joins(t *testing.T) {
	s.inOriginal(t, "create table wide as select n, repeat('x', 40) as text from generate_series(1, 900000) n")
	s.inOriginal(t, "analyze wide")
	const join = "set work_mem = '64MB'; set max_parallel_workers_per_gather = 4; set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; " +
		"set enable_mergejoin = off; select count(*) from wide a join wide b on a.n = b.n and a.text = b.text"
	if got := s.inOriginal(t, join); got != "900000" {
		t.Errorf("a join has returned %s", got)
	}
}
