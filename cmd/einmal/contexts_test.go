package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// teamOperator returns the directory of an operator that uses the framework. It keeps a finalizer on its objects.
func teamOperator(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "team"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// bothContexts writes a kubeconfig with the contexts of both clusters. Its current context is production.
func (c *clusters) bothContexts(t *testing.T) string {
	t.Helper()
	rules := clientcmd.ClientConfigLoadingRules{Precedence: []string{c.production.kubeconfig, c.staging.kubeconfig}}
	both, err := rules.Load()
	if err == nil {
		err = clientcmdapi.FlattenConfig(both)
	}
	file := filepath.Join(t.TempDir(), "both.kubeconfig")
	if err == nil {
		err = clientcmd.WriteToFile(*both, file)
	}
	if err != nil || both.CurrentContext != "production" || len(both.Contexts) != 2 {
		t.Fatalf("kubeconfig with two contexts: %v, error %v", both, err)
	}
	return file
}

// linesToCopyStayInTheContext checks that every line that dev prints for copying acts in the context of --context, even if
// the current context of the kubeconfig is another one.
func linesToCopyStayInTheContext(t *testing.T, c *clusters) {
	p := newPlayground(t)
	team := teamOperator(t)
	dev := launch(t, c.einmal(p, "dev", "--kubeconfig", c.bothContexts(t), "--context", "staging",
		"--yes-apply-to", "staging", "--apply", filepath.Join(team, "config", "samples"), team))
	before := dev.await("in another terminal:  ")
	hint, _, _ := strings.Cut(dev.await("\n"), " get ")
	if strings.Contains(before, "export KUBECONFIG") {
		t.Errorf("printed a line that selects the current context, which is production:\n%s", before)
	}
	shell(t, hint+" create namespace from-the-hint")
	dev.signal(syscall.SIGTERM)
	dev.await("; to delete them:\n")
	commands := dev.await("dev | stopped\n")
	expectText(t, commands, "(cd "+team+" && go run . uninstall ", "kubectl ")
	runCommands(t, commands)
	c.staging.kubectl(t, "delete", "--wait=false", "namespace", "from-the-hint")
	c.staging.expectNothingOf(t, "team")
	t.Run("the definitions existed before", func(t *testing.T) { finalizersAreRemoved(t, c, team) })
}

// finalizersAreRemoved checks that the printed commands delete an object with the operator's finalizer although the
// operator has stopped and its uninstall verb must not run.
func finalizersAreRemoved(t *testing.T, c *clusters, team string) {
	p := newPlayground(t)
	crds, err := exec.CommandContext(t.Context(), "go", "run", team, "crds").Output()
	if err != nil {
		t.Fatal(err)
	}
	p.write("crds.yaml", string(crds))
	c.staging.kubectl(t, "create", "-f", filepath.Join(p.root, "crds.yaml"))
	dev := launch(t, c.einmal(p, "dev", "--kubeconfig", c.staging.kubeconfig, "--yes-apply-to", "staging",
		"--apply", filepath.Join(team, "config", "samples"), team))
	dev.await("in another terminal:  ")
	c.staging.kubectl(t, "wait", "--for=jsonpath={.metadata.finalizers[0]}=teams.example.com/finalizer", "team/blue")
	dev.signal(syscall.SIGTERM)
	dev.await("dev | Team default/blue has the finalizer teams.example.com/finalizer of the operator, which has stopped: ")
	dev.await("; to delete them:\n")
	commands := dev.await("dev | stopped\n")
	if strings.Contains(commands, "uninstall") {
		t.Errorf("uninstall would strip the objects of another installation:\n%s", commands)
	}
	runCommands(t, commands)
	c.staging.kubectl(t, "delete", "-f", filepath.Join(p.root, "crds.yaml"))
	c.staging.expectNothingOf(t, "team")
}

// expectNothingOf fails if the cluster has objects that an operator's installation consists of. They have the given text
// in their names.
func (c *controlPlane) expectNothingOf(t *testing.T, name string) {
	t.Helper()
	left := c.kubectl(t, "get", "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces", "-o", "name")
	for line := range strings.Lines(left) {
		if strings.Contains(line, name) {
			t.Errorf("not deleted: %s", line)
		}
	}
}

// shell runs a line that dev has printed for copying. The kubectl of the line is that of devcluster.
func shell(t *testing.T, line string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(devcluster(t), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = bin
	cmd.Env = slices.Concat(einmal(t, bin).Env, []string{"PATH=" + bin + ":" + os.Getenv("PATH")})
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, output)
	}
}

// runCommands runs the lines that dev has printed for copying: those without the name of a stream.
func runCommands(t *testing.T, lines string) {
	t.Helper()
	count := 0
	for line := range strings.Lines(lines) {
		if stream, _, found := strings.Cut(line, " | "); found && slices.Contains([]string{"dev", "operator", "cluster"}, strings.TrimSpace(stream)) {
			continue
		}
		count++
		shell(t, line)
	}
	if count < 5 {
		t.Errorf("found %d commands, want at least 5, in\n%s", count, lines)
	}
}
