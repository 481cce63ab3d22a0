package cluster_test

import (
	"os"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// A control plane gets a port by chance, which another one had before. What kubectl had learned of that one's kinds would be taken for
// true: a kind would be asked for in a version that is not served.
func TestKubectlKnowsNothingOfOtherControlPlanes(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	cluster.Shared(t).Kubectl(t, "", "get", "namespaces")
	left, err := os.ReadDir(home)
	if err != nil || len(left) > 0 {
		t.Errorf("kubectl keeps in the home of who runs the tests: %v, %v", left, err)
	}
}
