package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// The object of the article has two servers: one accepts writes, and the other one has them at once. Whatever is scaled, deleted, cut off or changed, both
// are there again.
func TestNodeRunsStandbys(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.MustKubectl(t, "label", "namespace", "production", "pod-security.kubernetes.io/enforce=restricted")
	s.connect(t, "16")
	const both, three = "Ready Streaming", "Ready Streaming Streaming"
	s.awaitServers(t, both)

	t.Run("a row is read on the standby, which accepts no writes", func(t *testing.T) {
		s.inServer(t, 1, "select n, by from kept", "42|app")
		if out, err := s.psql(1, "create table other (n int)")(t.Context()); err == nil {
			t.Errorf("the standby has accepted a write: %s", out)
		}
		s.awaitReading(t, "select n, pg_is_in_recovery() from kept", "42|t")
	})
	t.Run("the number of servers changes", func(t *testing.T) {
		s.MustKubectl(t, "scale", "--namespace", "production", "database/orders-db", "--replicas=3")
		s.awaitServers(t, three)
		s.inServer(t, 0, "create table more as select generate_series(1, 100000) as n", "")
		s.inServer(t, 2, "select count(*) from more", "100000")
		s.MustKubectl(t, "scale", "--namespace", "production", "database/orders-db", "--replicas=2")
		s.awaitServers(t, both)
		s.inServer(t, 0, "select string_agg(slot_name, ',') from pg_replication_slots", "einmal_1")
		s.uid(t, "persistentvolumeclaim", "data-orders-db-2")
	})
	t.Run("the Pods are deleted", func(t *testing.T) {
		for _, ordinal := range []int{0, 1} {
			s.remove(t, "pod", fmt.Sprintf("orders-db-%d", ordinal))
			s.awaitServers(t, both)
		}
		s.follows(t)
	})
	t.Run("the StatefulSet is deleted in a switchover", s.losesItsStatefulSet)
	t.Run("the volume of the standby is lost", func(t *testing.T) {
		s.MustKubectl(t, "delete", "persistentvolumeclaim", "--namespace", "production", "data-orders-db-1", "--wait=false")
		s.remove(t, "pod", "orders-db-1")
		s.awaitServers(t, both)
		s.follows(t)
	})
	t.Run("the standby is cut off", s.isCutOff)
	t.Run("the primary has deleted what the standby has missed", func(t *testing.T) {
		pod := s.uid(t, "pod", "orders-db-1")
		// The standby can connect again between the two statements, which fails the second one, and then be off when they are repeated.
		s.inServer(t, 0, "select count(pg_terminate_backend(active_pid)) < 2 from pg_replication_slots; select pg_drop_replication_slot('einmal_1') is not null", "t\nt")
		s.awaitNew(t, "pod", "orders-db-1", pod)
		s.awaitServers(t, both)
		s.follows(t)
	})
	t.Run("a parameter is raised and lowered", func(t *testing.T) {
		for _, value := range []string{"200", "50"} {
			s.change(t, "orders-db", `{"parameters":{"max_connections":"`+value+`"}}`)
			s.inServer(t, 0, "show max_connections", value)
			s.awaitServers(t, both)
		}
		s.follows(t)
	})
	s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="Progressing")].reason`, "Complete")
	t.Run("passwords are in Secrets only", s.keepsPasswords)
}

// losesItsStatefulSet deletes the StatefulSet when a switchover has begun, without its Pods and with them. The switchover succeeds or fails.
func (s *started) losesItsStatefulSet(t *testing.T) {
	for _, cascade := range []string{"orphan", "background"} {
		s.change(t, "orders-db", `{"primary":1}`)
		awaitOutput(t, "a switchover begins", s.fieldOf("database", "orders-db", ".status['switchover','primary']"), has("orders-db-1"))
		s.MustKubectl(t, "delete", "statefulset", "--namespace", "production", "orders-db", "--cascade="+cascade, "--wait=false")
		awaitOutput(t, "the switchover ends", s.fieldOf("database", "orders-db", `.status.conditions[?(@.type=="PrimaryAsRequested")].reason`),
			func(reason string) bool { return reason == "AsRequested" || reason == "SwitchoverFailed" })
		s.change(t, "orders-db", `{"primary":0}`)
		s.awaitServers(t, "Ready Streaming")
		s.follows(t)
	}
}

// awaitServers waits until the servers have these states, and until the Service for reads leads to those that stream.
func (s *started) awaitServers(t *testing.T, want string) {
	t.Helper()
	s.await(t, "database", "orders-db", ".status.instances[*].state", want)
	names := ""
	for ordinal, state := range strings.Fields(want) {
		if state == "Streaming" {
			names += fmt.Sprintf(" orders-db-%d", ordinal)
		}
	}
	awaitOutput(t, "the Service for reads leads to"+names, s.fieldOf("endpoints", "orders-db-ro", ".subsets[*].addresses[*].targetRef.name"),
		func(found string) bool { return len(strings.Fields(found)) == len(strings.Fields(names)) })
}

// psql returns a command that executes a statement in a server, as its superuser.
func (s *started) psql(ordinal int, statement string) command {
	return s.kubectl("exec", fmt.Sprintf("orders-db-%d", ordinal), "--", "psql", "-qAtc", statement, "app")
}

// inServer waits until a statement has a result in a server.
func (s *started) inServer(t *testing.T, ordinal int, statement, want string) {
	t.Helper()
	awaitOutput(t, fmt.Sprintf("%s returns %s in server %d", statement, want, ordinal), s.psql(ordinal, statement), is(want))
}

// awaitReading is awaitSQL through the Service for reads.
func (s *started) awaitReading(t *testing.T, statement, want string) {
	t.Helper()
	awaitOutput(t, statement+" returns "+want+" from a standby",
		s.kubectl("exec", "client", "--", "env", "PGHOST=orders-db-ro", "psql", "-qAtc", statement), is(want))
}

// follows expects that what is written on the primary is soon on the standby.
func (s *started) follows(t *testing.T) {
	t.Helper()
	now := fmt.Sprint(time.Now().UnixNano())
	s.inServer(t, 0, "create table if not exists said (n text); insert into said values ('"+now+"')", "")
	s.inServer(t, 1, "select n from said order by n desc limit 1", now)
}

// isCutOff takes the standby's way to the primary away. Meanwhile it serves no reads, and the primary goes on.
func (s *started) isCutOff(t *testing.T) {
	s.route(t, "add")
	s.awaitServers(t, "Ready Disconnected")
	s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="Degraded")].reason`, "Disconnected")
	s.awaitSQL(t, "select n from kept", "42")
	s.route(t, "del")
	s.awaitServers(t, "Ready Streaming")
	s.follows(t)
}

// route adds or deletes a route that leads nowhere in the network of the standby, to the address of the primary's Service.
func (s *started) route(t *testing.T, verb string) {
	t.Helper()
	address, err := s.field(t.Context(), "service", "orders-db-rw", ".spec.clusterIP")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "nsenter", "--target", process(t, "POD_NAME=orders-db-1", "postgres", "-D"), "--net", "ip", "route", verb, "blackhole", address)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

// process returns the ID of a process whose command line begins with these words and whose environment has a variable.
func process(t *testing.T, variable string, words ...string) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		environment, err := os.ReadFile(file)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && strings.HasPrefix(string(line), strings.Join(words, "\x00")+"\x00") && strings.Contains(string(environment), variable+"\x00") {
			return filepath.Base(filepath.Dir(file))
		}
	}
	t.Fatalf("no process %v has the variable %s", words, variable)
	return ""
}
