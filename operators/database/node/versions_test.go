package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// versioned is a database of a major version, with a parameter that needs a restart.
const versioned = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"v%[1]s"},
	"spec":{"engine":"postgresql","version":"%[1]s","storage":"300Mi","parameters":{"max_connections":"50"}}}`

// The same objects run every version that the operator supports.
func TestNodeRunsEveryVersion(t *testing.T) {
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15 16 17 18")
	s := &started{realnode.Start(t, script, ready)}
	for _, version := range []string{"15", "17", "18"} { // The sample has 16.
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(versioned, version)))
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
		s.runs(t, "v17", `"postgres:18"`)
		s.awaitReason(t, "v17", "VersionMismatch")
		s.runs(t, "v17", "null")
		s.awaitReason(t, "v17", "DatabaseReady")
		s.inPod(t, "v17", "select n from kept", "17")
	})
	t.Run("the version of the spec cannot read the data", func(t *testing.T) {
		s.MustKubectl(t, "patch", "database", "--namespace", "production", "v17", "--type", "merge", "--patch", `{"spec":{"version":"18"}}`)
		s.awaitReason(t, "v17", "VersionNotSupported")
		s.inPod(t, "v17", "select n from kept", "17")
	})
}

// runs changes the image of a Database, and deletes its Pod, so that the next one has it.
func (s *started) runs(t *testing.T, name, image string) {
	t.Helper()
	s.MustKubectl(t, "patch", "database", "--namespace", "production", name, "--type", "merge", "--patch", `{"spec":{"image":`+image+`}}`)
	s.await(t, "statefulset", name, ".spec.template.spec.containers[0].image", strings.Trim(strings.Replace(image, "null", "postgres:17", 1), `"`))
	s.remove(t, "pod", name+"-0")
}
