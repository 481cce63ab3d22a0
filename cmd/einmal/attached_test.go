package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func pidOf(p *program) string { return strconv.Itoa(p.cmd.Process.Pid) }

// kubectlFollowsTheDevcluster checks that the command line that dev prints and "einmal kubectl" use the devcluster of the
// directory even if $KUBECONFIG names another cluster.
func kubectlFollowsTheDevcluster(t *testing.T, c *clusters) {
	p := newPlayground(t)
	folder := filepath.Dir(c.staging.data)
	cmd := c.einmal(p, "dev", p.operator)
	cmd.Dir = folder
	dev := launch(t, cmd)
	dev.await("in another terminal:  ")
	hint, _, _ := strings.Cut(dev.await("\n"), " get ")
	dev.signal(syscall.SIGTERM)
	dev.end()

	inProduction := func(name string, args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		cmd.Env = slices.Concat(einmal(t, folder).Env, []string{"KUBECONFIG=" + c.production.kubeconfig})
		return run(t, cmd)
	}
	if output, code := inProduction("sh", "-c", hint+" create namespace from-the-hint"); code != 0 {
		t.Errorf("command line printed by dev: exit code %d\n%s", code, output)
	}
	output, code := inProduction(os.Args[0], "kubectl", "create", "namespace", "from-the-folder")
	if code != 0 {
		t.Errorf("einmal kubectl: exit code %d\n%s", code, output)
	}
	expectText(t, output, "not $KUBECONFIG", "--kubeconfig "+c.production.kubeconfig)
	// Variables of a script that are not set.
	for _, empty := range [][]string{{"--kubeconfig", ""}, {"--kubeconfig="}, {"--context", ""}} {
		output, code := inProduction(os.Args[0], append([]string{"kubectl", "create", "namespace", "from-nowhere"}, empty...)...)
		if code != 2 {
			t.Errorf("einmal kubectl %q: exit code %d, want 2\n%s", empty, code, output)
		}
		expectText(t, output, "must not be empty; leave the flag out")
	}
	c.staging.kubectl(t, "delete", "--wait=false", "namespace", "from-the-hint", "from-the-folder")
}

// onlyInstalledVersionsRun checks that a version whose CRDs cannot be installed never runs, not even after a restart, and
// that dev reports what it waits for.
func onlyInstalledVersionsRun(t *testing.T, c *clusters) {
	p := newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator))
	dev.await("dev | using the devcluster that is running for " + c.staging.data)
	dev.await("dev | Ctrl-C stops the operator; the devcluster keeps running\n")
	p.expectOnScreen(dev, "operator | my server is "+c.staging.server+"\n")

	const source = "cmd/einmal/testdata/operator/main.go"
	good := p.read(source)
	next := strings.Replace(good, `fmt.Println("I am"`, `fmt.Println("the next version is"`, 1)
	p.write(source, strings.Replace(next, "fmt.Print(crds)", `panic("no definitions")`, 1))
	dev.await("no definitions")
	dev.await("dev | the previous version keeps running; waiting for source changes\n")
	if err := syscall.Kill(operatorProcess(t, c.staging.data), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dev.await("dev | the operator exited unexpectedly")
	if between := dev.await("operator | I am " + account + "\n"); strings.Contains(between, "the next version") {
		t.Errorf("a version that was not installed was started:\n%s", between)
	}

	t.Run("a hanging crds verb is reported", func(t *testing.T) {
		p.write(source, strings.Replace(next, "fmt.Print(crds)", "time.Sleep(time.Hour)", 1))
		dev.await(`dev | waiting for "operator crds" to print the operator's CRDs: running for 3s, timeout 30s` + "\n")
	})
	dev.signal(syscall.SIGINT)
	dev.await("operator | goodbye\n")
	if code := dev.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectNoFiles(t, filepath.Join(c.staging.data, "einmal"))
}

// refusedCommandLine checks that an operator that rejects its command line is not restarted, that a failed build does not
// claim that it runs, and that operators accept the command line in the example of the help.
func refusedCommandLine(t *testing.T, c *clusters) {
	p := newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator, "--", "--log-level", "debug"))
	dev.await("operator | flag provided but not defined: -log-level\n")
	dev.await("dev | the operator exited unexpectedly (exit code 2)\n")
	dev.await("dev | the operator rejected its command line; it will be restarted only after source changes\n")
	source := "cmd/einmal/testdata/operator/main.go"
	good := p.read(source)
	p.write(source, strings.Replace(good, "func main() {", "import \"nowhere\"\nfunc main() {", 1))
	dev.await("dev | the build failed")
	dev.await("dev | the previous version is not running now; the failed version does not replace it; waiting for source changes\n")
	p.write(source, strings.Replace(good, `_ = flags.String("health`, "_ = flags.String(\"log-level\", \"\", \"\")\n\t_ = flags.String(\"health", 1))
	if between := dev.await("dev | changed: main.go\n"); strings.Contains(between, "restarting the operator in") {
		t.Errorf("a restart of the operator was announced:\n%s", between)
	}
	dev.await("operator | I am " + account + "\n")
	dev.signal(syscall.SIGTERM)
	dev.end()

	help, _ := run(t, c.einmal(p, "dev", "--help"))
	_, example, found := strings.Cut(help, "./operators/volumeclaim -- ")
	if !found {
		t.Fatalf("the help has no example of arguments for the operator:\n%s", help)
	}
	example, _, _ = strings.Cut(example, "\n")
	args := append([]string{"run", "../../examples/hello", "run", "--kubeconfig", "/none"}, strings.Fields(example)...)
	if output, _ := run(t, exec.CommandContext(t.Context(), "go", args...)); !strings.Contains(output, "exit status 1\n") {
		t.Errorf("hello run %s: want exit code 1 because the kubeconfig does not exist, got\n%s", example, output)
	}
}

// endOfClusterIsNoticed checks that dev exits when a devcluster that it did not start exits, and that it reports that a
// cluster named by --kubeconfig does not answer. At the end it prints no commands for that cluster.
func endOfClusterIsNoticed(t *testing.T, c *clusters) {
	p, other := newPlayground(t), newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator))
	named := launch(t, c.einmal(other, "dev", "--kubeconfig", c.staging.kubeconfig, "--yes-apply-to", "staging",
		"--apply", "greetings.yaml", other.operator))
	dev.await("operator | my server is " + c.staging.server + "\n")
	named.await("dev | Ctrl-C stops the operator; the cluster keeps running")
	c.staging.stop(t)
	dev.await("the devcluster exited unexpectedly (process ")
	dev.await(" is gone); it was not started by this einmal dev")
	if code := dev.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	expectNoFiles(t, filepath.Join(c.staging.data, "einmal"))

	named.await("dev | the cluster staging does not answer: ")
	c.staging.start(t).await("\nexport KUBECONFIG=")
	between := named.await("dev | the cluster staging answers again\n")
	c.staging.stop(t)
	between += named.await("dev | the cluster staging does not answer: ")
	if strings.Contains(between, "does not answer") {
		t.Errorf("the same state was reported again:\n%s", between)
	}
	named.signal(syscall.SIGINT)
	between = named.await("einmal: determine the commands that delete the objects created by this run: ")
	if strings.Contains(between, "kubectl ") {
		t.Errorf("printed commands for a cluster that does not answer:\n%s", between)
	}
	named.await("these objects stay in the cluster staging (" + c.staging.server + "): Greeting default/world")
	if code := named.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
