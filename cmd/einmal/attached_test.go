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

// kubectlFollowsTheDevcluster shows that neither the line that dev prints nor "einmal kubectl" follows $KUBECONFIG away
// from the devcluster of the folder.
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
		t.Errorf("the line that dev prints: exit code %d\n%s", code, output)
	}
	output, code := inProduction(os.Args[0], "kubectl", "create", "namespace", "from-the-folder")
	if code != 0 {
		t.Errorf("einmal kubectl: exit code %d\n%s", code, output)
	}
	expectText(t, output, "not $KUBECONFIG", "--kubeconfig "+c.production.kubeconfig)
	c.staging.kubectl(t, "delete", "--wait=false", "namespace", "from-the-hint", "from-the-folder")
}

// onlyInstalledVersionsRun shows that a version whose CRDs cannot be installed never runs, not after a restart either,
// and that dev says what it waits for.
func onlyInstalledVersionsRun(t *testing.T, c *clusters) {
	p := newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator))
	dev.await("dev | using the devcluster that is running for " + c.staging.data)
	dev.await("dev | Ctrl-C stops the operator; the devcluster runs on\n")
	p.expectOnScreen(dev, "operator | my server is "+c.staging.server+"\n")

	const source = "cmd/einmal/testdata/operator/main.go"
	good := p.read(source)
	next := strings.Replace(good, `fmt.Println("I am"`, `fmt.Println("the next version is"`, 1)
	p.write(source, strings.Replace(next, "fmt.Print(crds)", `panic("no definitions")`, 1))
	dev.await("no definitions")
	dev.await("dev | the operator from before keeps running; waiting for a change of the sources\n")
	if err := syscall.Kill(operatorProcess(t, c.staging.data), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dev.await("dev | the operator ended by itself")
	if between := dev.await("operator | I am " + account + "\n"); strings.Contains(between, "the next version") {
		t.Errorf("a version that was not installed was started:\n%s", between)
	}

	t.Run("a verb that hangs is named", func(t *testing.T) {
		p.write(source, strings.Replace(next, "fmt.Print(crds)", "time.Sleep(time.Hour)", 1))
		dev.await(`dev | waiting for "operator crds" to print the operator's CRDs: it has run for 3s and may take 30s` + "\n")
	})
	dev.signal(syscall.SIGINT)
	dev.await("operator | goodbye\n")
	if code := dev.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectNoFiles(t, filepath.Join(c.staging.data, "einmal"))
}

// refusedCommandLine shows that an operator that does not accept its command line is started once, and that the example
// in the help is a command line that operators accept.
func refusedCommandLine(t *testing.T, c *clusters) {
	p := newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator, "--", "--log-level", "debug"))
	dev.await("operator | flag provided but not defined: -log-level\n")
	dev.await("dev | the operator ended by itself (exit code 2)\n")
	dev.await("dev | the operator does not accept its command line, so it is not started again until its sources change\n")
	source := "cmd/einmal/testdata/operator/main.go"
	p.write(source, strings.Replace(p.read(source), `_ = flags.String("health`, "_ = flags.String(\"log-level\", \"\", \"\")\n\t_ = flags.String(\"health", 1))
	if between := dev.await("dev | changed: main.go\n"); strings.Contains(between, "started again in") {
		t.Errorf("the operator was to be started again:\n%s", between)
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
		t.Errorf("hello run %s: want exit code 1, as there is no kubeconfig, got\n%s", example, output)
	}
}

// endOfClusterIsNoticed shows that dev ends with a devcluster that was there before it.
func endOfClusterIsNoticed(t *testing.T, c *clusters) {
	p := newPlayground(t)
	dev := launch(t, c.einmal(p, "dev", "--data", c.staging.data, p.operator))
	dev.await("operator | my server is " + c.staging.server + "\n")
	c.staging.stop(t)
	dev.await("the devcluster ended by itself (process ")
	dev.await(" is gone); this einmal dev did not start it")
	if code := dev.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	expectNoFiles(t, filepath.Join(c.staging.data, "einmal"))
}
