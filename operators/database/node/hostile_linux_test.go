package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// hostile is a Database that harms its own server, or that asks much of the operator.
type hostile struct {
	name string
	// spec is what its spec has besides what all have.
	spec string
	// before are objects of others that exist before it, and sql is what its superuser executes when the server is ready.
	before, sql string
	// ready and parameters are the reasons of its conditions Ready and ParametersApplied at last.
	ready, parameters string
}

// No Database harms the operator or another Database, whatever its author or its superuser does: each one gets the status that it deserves, and all can be
// deleted. Meanwhile an app of another Database writes, whose server is switched over at the end.
func TestNodeIsNotHarmedByHostileDatabases(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")
	s.floodImage(t)
	app, end := s.writes(t)
	for _, group := range []struct {
		title string
		all   []hostile
	}{
		{"parameters that harm a server", harmfulParameters()},
		{"parameters that are refused", refusedParameters()},
		{"objects", hostileObjects()},
		{"what a superuser does", hostileSuperusers()},
	} {
		t.Run(group.title, func(t *testing.T) {
			for few := range slices.Chunk(group.all, 4) { // So that a slow machine starts their servers in time.
				s.suffers(t, few)
			}
		})
		t.Logf("%s: another app could not write for %s; the operator has used %d MiB", group.title, app.pause(), s.memoryOfOperator(t))
	}
	t.Run("a switchover with all parameters", s.switchesOverWithAll)
	t.Run("the claim of a server is deleted", s.keepsTheVolumeOfADeletedClaim)
	s.change(t, "orders-db", `{"primary":1}`)
	s.awaitPrimary(t, 1)
	t.Logf("switchover: the app could not write for %s", app.pause())
	if servers := end(); servers != 2 {
		t.Errorf("%d servers of the other Database have accepted writes, want the one of before the switchover and the one after it", servers)
	}
	const limit = 128 // See deployment.yaml.
	if used := s.memoryOfOperator(t); used >= limit*3/4 {
		t.Errorf("the operator has used %d MiB, want less than three quarters of %d", used, limit)
	}
	restarts := s.MustKubectl(t, "get", "pods", "--namespace", "database-system", "--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "0" {
		t.Errorf("the operator was restarted: %s", restarts)
	}
}

func harmfulParameters() []hostile {
	works := func(name, parameters string) hostile {
		return hostile{name: name, spec: `{"parameters":{` + parameters + `}}`, ready: "DatabaseReady", parameters: "Applied"}
	}
	return []hostile{
		works("serializable", `"default_transaction_isolation":"serializable"`),
		works("short-statements", `"statement_timeout":"1"`),
		works("short-locks", `"lock_timeout":"1","deadlock_timeout":"1"`),
		works("short-sessions", `"idle_session_timeout":"1","idle_in_transaction_session_timeout":"1"`),
		works("few-connections", `"max_connections":"10","max_locks_per_transaction":"10"`),
		works("no-space", `"temp_file_limit":"0","work_mem":"64","temp_buffers":"100","shared_buffers":"16","maintenance_work_mem":"1024"`),
		works("all-is-logged", `"log_min_duration_statement":"0","log_autovacuum_min_duration":"0","log_temp_files":"0","log_lock_waits":"on"`),
		works("late-writes", `"checkpoint_timeout":"86400","max_wal_size":"299MB","min_wal_size":"299MB","wal_writer_delay":"10000","commit_delay":"100000"`),
		{name: "much-memory", spec: `{"parameters":{"max_connections":"10000","track_activity_query_size":"1MB"}}`, ready: "Restarting", parameters: "NotAsked"},
	}
}

func refusedParameters() []hostile {
	refused := func(name, parameters string) hostile {
		return hostile{name: name, spec: `{"parameters":{` + parameters + `}}`, ready: "ParametersInvalid", parameters: "Invalid"}
	}
	return []hostile{
		refused("runs-a-command", `"archive_command":"rm -rf /data"`),
		refused("loads-a-library", `"shared_preload_libraries":"/tmp/evil"`),
		refused("listens-nowhere", `"listen_addresses":"","port":"1"`),
		refused("admits-all", `"hba_file":"/tmp/all"`),
		refused("follows-another", `"primary_conninfo":"host=evil"`),
		refused("waits-for-standbys", `"synchronous_standby_names":"*"`),
		refused("loses-commits", `"fsync":"off","full_page_writes":"off"`),
		refused("adds-lines", `"work_mem":"64MB'\nlisten_addresses = ''"`),
		refused("more-than-the-volume", `"max_wal_size":"64TB"`),
		refused("more-than-memory", `"shared_buffers":"64GB"`),
		refused("no-number", `"work_mem":"0x7fffffffffffffff","random_page_cost":"nan"`),
	}
}

func hostileObjects() []hostile {
	const fine = "DatabaseReady"
	return []hostile{
		{name: "floods", spec: `{"image":"flood:dev"}`, ready: "Unreachable"},
		{name: "no-image-name", spec: `{"image":"No Image!"}`, ready: "ImageNotAvailable"},
		{name: "no-class", spec: `{"storageClassName":"missing"}`, ready: "Unschedulable"},
		{name: "thousand-cores", spec: `{"resources":{"requests":{"cpu":"1000"}}}`, ready: "Unschedulable"},
		{name: "one-byte", spec: `{"resources":{"limits":{"memory":"1"}}}`, ready: "Starting"},
		{name: "little-memory", spec: `{"resources":{"limits":{"memory":"20Mi"}}}`, ready: "CreationFailed"},
		{name: "no-resource", spec: `{"resources":{"limits":{"No Resource!":"1"}}}`, ready: "ObjectRefused"},
		{name: "no-pull-secret", spec: `{"imagePullSecrets":[{"name":"missing"}]}`, ready: fine},
		{name: "each-minute", spec: `{"backupEnabled":true,"backup":{"schedule":"* * * * *"}}`, ready: fine},
		{name: "no-schedule", spec: `{"backupEnabled":true,"backup":{"schedule":"every day"}}`, ready: fine},
		{name: "no-bucket", spec: `{"backupEnabled":true,"backup":{"s3":{"endpoint":"http://192.0.2.1","bucket":"none","secretName":"missing"}}}`, ready: fine},
		{name: "no-backup", spec: `{"bootstrap":{"fromBackup":{"database":"missing"}}}`, ready: "Unschedulable"},
		{name: "no-version", spec: `{"version":"99"}`, ready: "VersionNotSupported"},
		{name: "no-engine", spec: `{"engine":"mysql"}`, ready: "EngineNotSupported"},
		{name: "a-name-as-long-as-a-name-of-a-database-can-be", ready: fine},
		{name: "taken", before: `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"production","name":"taken-app"}}`, ready: "CredentialsConflict"},
	}
}

func hostileSuperusers() []hostile {
	const fine = "DatabaseReady"
	volume := func(body string) string {
		return "create or replace function einmal.volume() returns text language sql as $$" + body + "$$"
	}
	return []hostile{
		{name: "large-answer", sql: volume("select repeat('x', 900000000)"), ready: fine},
		{name: "late-answer", sql: volume("select pg_sleep(3600)::text"), ready: fine},
		{name: "wrong-answer", sql: volume("select 'no number'"), ready: fine},
		{name: "no-functions", sql: "drop schema einmal cascade", ready: fine},
		{name: "no-monitor", sql: "alter role einmal_monitor nologin; alter role einmal_monitor rename to other", ready: fine},
		{name: "no-login", sql: "alter role app nologin", ready: "LoginRejected"},
		{name: "no-connections", sql: "alter database app connection limit 0", ready: "ConnectionsExhausted"},
		{name: "no-database", sql: "alter database app rename to other", ready: "LoginRejected"},
		{name: "late-logins", sql: "alter system set post_auth_delay = '2s'", ready: fine},
		{name: "many-slots", sql: "select pg_create_physical_replication_slot('einmal_' || n) from generate_series(1, 9) n", ready: fine},
	}
}

// floodImage makes the image of floodserver.
func (s *started) floodImage(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "sh"), "./floodserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Link(filepath.Join(folder, "sh"), filepath.Join(folder, "pg_isready")); err != nil {
		t.Fatal(err)
	}
	s.BuildImage(t, "flood:dev", "--add", folder+":/bin", "--env", "PATH=/bin")
}

// database returns a Database as JSON.
func (h hostile) database(t *testing.T) string {
	t.Helper()
	spec := map[string]any{"engine": "postgresql", "version": "16", "storage": "300Mi", "deletionPolicy": "Delete", "backupEnabled": false}
	spec["resources"] = map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "64Mi"}, "limits": map[string]any{"memory": "1Gi"}} // All fit.
	if h.spec != "" {
		var more map[string]any
		if err := json.Unmarshal([]byte(h.spec), &more); err != nil {
			t.Fatal(err)
		}
		maps.Copy(spec, more)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "database.einmal.dev/v1", "kind": "Database", "metadata": map[string]any{"namespace": "production", "name": h.name}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// suffers creates Databases, waits until they have the status that they deserve, and deletes them.
func (s *started) suffers(t *testing.T, all []hostile) {
	t.Helper()
	for _, one := range all {
		if one.before != "" {
			s.restore(t, one.before)
		}
		s.restore(t, one.database(t))
	}
	for _, one := range all {
		if one.sql != "" {
			s.awaitReason(t, one.name, "DatabaseReady")
			s.MustKubectl(t, "exec", "--namespace", "production", one.name+"-0", "--", "psql", "-qc", one.sql)
			s.MustKubectl(t, "exec", "--namespace", "production", one.name+"-0", "--", "psql", "-qc", "select pg_reload_conf()")
		}
	}
	for _, one := range all {
		s.awaitReason(t, one.name, one.ready)
		if one.parameters != "" {
			s.await(t, "database", one.name, `.status.conditions[?(@.type=="ParametersApplied")].reason`, one.parameters)
		}
		t.Logf("%s: %s", one.name, s.MustKubectl(t, "get", "database", "--namespace", "production", one.name, "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`))
	}
	for _, one := range all {
		s.MustKubectl(t, "delete", "database", "--namespace", "production", one.name, "--wait=false")
	}
	for _, one := range all {
		s.MustKubectl(t, "wait", "--for=delete", "--timeout=5m", "--namespace", "production", "database/"+one.name)
	}
}

// switchesOverWithAll switches over a Database with all parameters that harm a server and can be applied.
func (s *started) switchesOverWithAll(t *testing.T) {
	parameters := map[string]any{}
	for _, one := range harmfulParameters() {
		if one.parameters != "Applied" {
			continue
		}
		var spec struct{ Parameters map[string]any }
		if err := json.Unmarshal([]byte(one.spec), &spec); err != nil {
			t.Fatal(err)
		}
		maps.Copy(parameters, spec.Parameters)
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		t.Fatal(err)
	}
	all := hostile{name: "all", spec: fmt.Sprintf(`{"replicas":2,"parameters":%s}`, text)}
	s.restore(t, all.database(t))
	s.await(t, "database", "all", ".status.instances[*].state", "Ready Streaming")
	s.change(t, "all", `{"primary":1}`)
	s.await(t, "database", "all", ".status.instances[*].state", "Streaming Ready")
	s.awaitReason(t, "all", "DatabaseReady")
	s.await(t, "database", "all", `.status.conditions[?(@.type=="ParametersApplied")].reason`, "Applied")
}

// keepsTheVolumeOfADeletedClaim deletes the claim of a server, whose volume stays as long as its Pod does. A parameter that needs a restart does not end the
// Pod. The command that the status says keeps the volume.
func (s *started) keepsTheVolumeOfADeletedClaim(t *testing.T) {
	s.restore(t, hostile{name: "unclaimed"}.database(t))
	s.awaitReason(t, "unclaimed", "DatabaseReady")
	pod, volume := s.uid(t, "pod", "unclaimed-0"), s.MustKubectl(t, "get", "persistentvolumeclaim", "--namespace", "production", "data-unclaimed-0", "--output", "jsonpath={.spec.volumeName}")
	s.MustKubectl(t, "delete", "persistentvolumeclaim", "--namespace", "production", "data-unclaimed-0", "--wait=false")
	s.change(t, "unclaimed", `{"parameters":{"max_connections":"50"}}`)
	s.await(t, "database", "unclaimed", `.status.conditions[?(@.type=="Degraded")].reason`, "ClaimDeleted")
	s.await(t, "database", "unclaimed", `.status.conditions[?(@.type=="ParametersApplied")].reason`, "Restarting")
	message := s.MustKubectl(t, "get", "database", "--namespace", "production", "unclaimed", "--output", `jsonpath={.status.conditions[?(@.type=="Degraded")].message}`)
	_, command, _ := strings.Cut(message, ": kubectl ")
	command, _, _ = strings.Cut(command, ". ")
	s.Shell(t, "kubectl "+command)
	if now := s.uid(t, "pod", "unclaimed-0"); now != pod {
		t.Error("the Pod was replaced")
	}
	s.MustKubectl(t, "delete", "database", "--namespace", "production", "unclaimed", "--timeout=5m")
	s.await(t, "persistentvolume", volume, ".status.phase", "Released")
}

// memoryOfOperator returns how much memory the operator has used at most, in MiB.
func (s *started) memoryOfOperator(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + process(t, "POD_NAMESPACE=database-system", "/usr/local/bin/database", "run") + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	kibibytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes / 1024
}
