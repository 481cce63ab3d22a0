package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// controlPlane is a devcluster that is running before dev starts.
type controlPlane struct {
	data       string // data directory
	kubeconfig string
	server     string
}

// startControlPlane starts a devcluster. It stops at the end of the test.
func startControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &controlPlane{data: filepath.Join(root, ".devcluster")}
	c.kubeconfig = filepath.Join(c.data, "kubeconfig")
	running := launch(t, exec.CommandContext(t.Context(), devcluster(t), "up", "--data", c.data))
	t.Cleanup(func() { c.stop(t) })
	running.await("\nexport KUBECONFIG=")
	c.server = c.kubectl(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	return c
}

// stop stops the cluster.
func (c *controlPlane) stop(t *testing.T) {
	t.Helper()
	_ = exec.CommandContext(context.Background(), devcluster(t), "down", "--data", c.data).Run()
}

// kubectl runs kubectl in the cluster and returns its output.
func (c *controlPlane) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, code := run(t, exec.CommandContext(t.Context(), devcluster(t), append([]string{"kubectl", "--data", c.data}, args...)...))
	if code != 0 {
		t.Fatalf("kubectl %s: exit code %d\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

func TestDevOnARunningDevcluster(t *testing.T) {
	t.Parallel()
	c := startControlPlane(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *controlPlane)
	}{
		{"the printed command works in any directory", printedCommandWorks},
		{"a version that is not installed does not run", onlyInstalledVersionsRun},
		{"a rejected command line is not retried", refusedCommandLine},
		{"a changed kubeconfig is refused", changedKubeconfigIsRefused},
		{"the exit of an already running cluster is noticed", endOfClusterIsNoticed}, // the last one, since it stops the cluster
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, c) }) {
			return // objects left in the cluster would make the other tests fail
		}
	}
}

// printedCommandWorks checks that the command line that dev prints uses the devcluster from any directory, also if
// $KUBECONFIG names another cluster.
func printedCommandWorks(t *testing.T, c *controlPlane) {
	p := newPlayground(t)
	dev := start(t, p.root, "dev", "--data", c.data, p.operator)
	dev.await("in another terminal:  ")
	hint, _, _ := strings.Cut(dev.await("\n"), " get ")
	dev.signal(syscall.SIGTERM)
	dev.end()

	cmd := exec.CommandContext(t.Context(), "sh", "-c", hint+" create namespace from-the-hint")
	cmd.Dir = t.TempDir()
	cmd.Env = slices.Concat(einmal(t, cmd.Dir).Env, []string{"KUBECONFIG=" + p.remoteKubeconfig()})
	if output, code := run(t, cmd); code != 0 {
		t.Errorf("%s: exit code %d\n%s", hint, code, output)
	}
	c.kubectl(t, "delete", "--wait=false", "namespace", "from-the-hint")
}

// remoteKubeconfig writes a kubeconfig for a server on another machine and returns its path.
func (p playground) remoteKubeconfig() string {
	p.t.Helper()
	const name = "remote.kubeconfig"
	p.write(name, `apiVersion: v1
kind: Config
current-context: remote
clusters: [{name: remote, cluster: {server: "https://203.0.113.1:6443"}}]
contexts: [{name: remote, context: {cluster: remote}}]
`)
	return filepath.Join(p.root, name)
}

// onlyInstalledVersionsRun checks that a version whose CRDs cannot be installed never runs, not even after a restart, and
// that dev reports what it waits for.
func onlyInstalledVersionsRun(t *testing.T, c *controlPlane) {
	p := newPlayground(t)
	cmd := einmal(t, p.root, "dev", "--data", c.data, p.operator)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+p.remoteKubeconfig())
	dev := launch(t, cmd)
	dev.await("dev | using the devcluster that is running for " + c.data)
	dev.await("dev | Ctrl-C stops the operator; the devcluster keeps running\n")
	p.expectOnScreen(dev, "operator | my server is "+c.server+"\n")

	const source = "cmd/einmal/testdata/operator/main.go"
	good := p.read(source)
	next := strings.Replace(good, `fmt.Println("I am"`, `fmt.Println("the next version is"`, 1)
	p.write(source, strings.Replace(next, "fmt.Print(crds)", `panic("no definitions")`, 1))
	dev.await("no definitions")
	dev.await("dev | the previous version keeps running; waiting for source changes\n")
	if err := syscall.Kill(operatorProcess(t, c.data), syscall.SIGKILL); err != nil {
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
	expectNoFiles(t, filepath.Join(c.data, "einmal"))
}

// refusedCommandLine checks that an operator that rejects its command line is not restarted, that a failed build does not
// claim that it runs, and that operators accept the command line in the example of the help.
func refusedCommandLine(t *testing.T, c *controlPlane) {
	p := newPlayground(t)
	dev := start(t, p.root, "dev", "--data", c.data, p.operator, "--", "--log-level", "debug")
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

	help, _ := run(t, einmal(t, p.root, "dev", "--help"))
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

// changedKubeconfigIsRefused checks that dev changes nothing if the kubeconfig in the data directory leads to another server.
func changedKubeconfigIsRefused(t *testing.T, c *controlPlane) {
	p := newPlayground(t)
	good, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "config", "set-cluster", "devcluster", "--server", "https://203.0.113.1:6443")
	output, code := run(t, einmal(t, p.root, "dev", "--data", c.data, p.operator))
	if err := os.WriteFile(c.kubeconfig, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if code != 1 || strings.Contains(output, "export KUBECONFIG") {
		t.Errorf("exit code %d, want 1, and no line to copy, in\n%s", code, output)
	}
	expectText(t, output, "einmal: check kubeconfig "+c.kubeconfig+": ", c.server+", got https://203.0.113.1:6443\nremedy: ", "down --data "+c.data)
}

// endOfClusterIsNoticed checks that dev exits when a devcluster that it did not start exits.
func endOfClusterIsNoticed(t *testing.T, c *controlPlane) {
	p := newPlayground(t)
	dev := start(t, p.root, "dev", "--data", c.data, p.operator)
	dev.await("operator | my server is " + c.server + "\n")
	c.stop(t)
	dev.await("the devcluster exited unexpectedly (process ")
	dev.await(" is gone); it was not started by this einmal dev")
	if code := dev.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	expectNoFiles(t, filepath.Join(c.data, "einmal"))
}

// operatorProcess returns the process ID of the operator whose program is below a directory.
func operatorProcess(t *testing.T, dir string) int {
	t.Helper()
	for pid, line := range processes(t, dir) {
		if strings.Contains(line, "/operator run --kubeconfig") {
			return pid
		}
	}
	t.Fatalf("no operator among %v", processes(t, dir))
	return 0
}
