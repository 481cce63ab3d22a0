package node

import (
	"fmt"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// versioned is a database of a version, with a parameter that needs a restart.
const versioned = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"%s"},
	"spec":{"engine":"postgresql","version":"%s","storage":"300Mi","parameters":{"max_connections":"50"}}}`

// The same objects run every version that the operator supports, and a change of the version keeps the data.
func TestNodeRunsEveryVersion(t *testing.T) {
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15 16.13 16 17 18")
	s := &started{realnode.Start(t, script, ready)}
	for _, version := range []string{"15", "17", "18"} { // The sample has 16.
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(versioned, "v"+version, version)))
	}
	for _, version := range []string{"15", "17", "18"} {
		name := "v" + version
		s.awaitReason(t, name, "DatabaseReady")
		s.inPod(t, name, "create table if not exists kept as select current_setting('server_version_num')::int / 10000 as n", "")
		s.remove(t, "pod", name+"-0")
		s.inPod(t, name, "select n from kept", version)
		s.inPod(t, name, "show max_connections", "50")
		s.await(t, "database", name, `.status.conditions[?(@.type=="ParametersApplied")].reason`, "Applied")
		s.awaitReason(t, name, "DatabaseReady")
	}
	t.Run("an image has another version than the data", func(t *testing.T) {
		s.change(t, "v17", `{"image":"postgres:18"}`)
		s.awaitReason(t, "v17", "VersionMismatch")
		s.change(t, "v17", `{"image":null}`)
		s.awaitReason(t, "v17", "DatabaseReady")
		s.inPod(t, "v17", "select n from kept", "17")
	})
	t.Run("the version of the spec cannot read the data", func(t *testing.T) {
		s.change(t, "v17", `{"version":"18"}`)
		s.awaitReason(t, "v17", "VersionNotSupported")
		s.inPod(t, "v17", "select n from kept", "17")
		s.change(t, "v17", `{"version":"17"}`)
		s.awaitReason(t, "v17", "DatabaseReady")
	})
	t.Run("a backup becomes a database of another major version", func(t *testing.T) {
		s.requestBackup(t, "v15", "first")
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "upgraded", "18", `{"database":"v15"}`)))
		s.awaitReason(t, "upgraded", "DatabaseReady")
		s.inPod(t, "upgraded", "select n, current_setting('server_version_num')::int / 10000 from kept", "15|18")
		s.requestBackup(t, "v18", "first")
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "downgraded", "15", `{"database":"v18"}`)))
		s.awaitReason(t, "downgraded", "RestoreFailed")
	})
	t.Run("the minor version changes", func(t *testing.T) {
		s.MustKubectl(t, "delete", "database", "--namespace", "production", "--timeout=5m", "v15", "v17", "v18", "upgraded", "downgraded") // Their servers take time.
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(versioned, "minor", "16.13")))
		s.change(t, "minor", `{"replicas":2}`)
		s.await(t, "database", "minor", ".status.instances[*].state", "Ready Streaming")
		s.inPod(t, "minor", "create table kept as select 42 as n", "")
		for _, to := range [][3]string{{"16", "160014", "Streaming Ready"}, {"16.13", "160013", "Ready Streaming"}} {
			s.change(t, "minor", `{"version":"`+to[0]+`"}`)
			s.await(t, "database", "minor", ".status.version", to[0])
			s.await(t, "database", "minor", ".status.instances[*].state", to[2])
			s.awaitReason(t, "minor", "DatabaseReady")
			s.inPod(t, "minor", "show server_version_num", to[1])
			s.inPod(t, "minor", "select n from kept", "42")
			s.await(t, "pod", "minor-0", `.metadata.annotations.database\.einmal\.dev/version`, to[0])
			s.await(t, "pod", "minor-1", `.metadata.annotations.database\.einmal\.dev/version`, to[0])
		}
		s.await(t, "database", "minor", `.status.conditions[?(@.type=="Progressing")].reason`, "Complete")
	})
}

// change changes the spec of a Database.
func (s *started) change(t *testing.T, name, spec string) {
	t.Helper()
	s.MustKubectl(t, "patch", "database", "--namespace", "production", name, "--type", "merge", "--patch", `{"spec":`+spec+`}`)
}
