package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// otherClusterIsNamed checks that dev lists the changes to an existing cluster and changes nothing until the user has
// named the cluster.
func otherClusterIsNamed(t *testing.T, c *clusters) {
	p := newPlayground(t)
	toProduction := []string{"dev", "--kubeconfig", c.production.kubeconfig, "--apply", "greetings.yaml"}
	with := func(more ...string) *exec.Cmd {
		return c.einmal(p, append(append(toProduction, more...), p.operator)...)
	}
	announced := []string{
		"  cluster     production\n", "  context     production (kubeconfig " + c.production.kubeconfig + ")\n",
		"  server      " + c.production.server + "\n", "  namespaces  ",
		"will apply to it", "Namespace greeting-system (new)\n", "CustomResourceDefinition greetings.test.einmal.dev (new)\n",
		"ClusterRoleBinding greeter (new)\n", "Greeting world (new)\n", "stay in the cluster when einmal dev ends",
	}

	output, code := run(t, with())
	if code != 2 {
		t.Errorf("without a terminal: exit code %d, want 2", code)
	}
	expectText(t, output, append(announced, "remedy: ", "--yes-apply-to production\n")...)
	output, code = run(t, with("--yes-apply-to", "staging"))
	if code != 2 {
		t.Errorf("with another name: exit code %d, want 2", code)
	}
	expectText(t, output, `must name the cluster to be changed, "production" at `+c.production.server+`, got "staging"`)
	c.production.expectUnchanged(t, c.untouched)

	dev, keyboard := onTerminal(t, with())
	dev.await("Type the name of the cluster (production) to continue: ")
	if _, err := keyboard.WriteString("yes\n"); err != nil {
		t.Fatal(err)
	}
	dev.await("nothing was applied")
	if code := dev.end(); code != 1 {
		t.Errorf("exit code %d after a wrong answer, want 1", code)
	}
	c.production.expectUnchanged(t, c.untouched)

	dev, keyboard = onTerminal(t, with("--clean-up"))
	dev.await("Type the name of the cluster (production) to continue: ")
	if _, err := keyboard.WriteString("production\n"); err != nil {
		t.Fatal(err)
	}
	dev.await("applied Greeting default/world")
	dev.await("Ctrl-C stops the operator and deletes the objects that this run created; the cluster keeps running")
	p.expectOnScreen(dev, "my server is "+c.production.server)
	dev.signal(syscall.SIGINT)
	dev.await("removed Greeting default/world") // while the operator runs
	dev.await("goodbye")
	dev.await("removed ClusterRoleBinding greeter")
	dev.await("removed Namespace greeting-system")
	dev.await("removed CustomResourceDefinition greetings.test.einmal.dev")
	if code := dev.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectNoFiles(t, filepath.Join(p.root, "cache"))
}

// restartsStay checks that a restarted operator stays in its cluster even if another dev runs the same operator in another
// cluster and the kubeconfig file has changed.
func restartsStay(t *testing.T, c *clusters) {
	p := newPlayground(t)
	in := func(cluster *controlPlane, more ...string) *exec.Cmd {
		args := []string{"dev", "--kubeconfig", cluster.kubeconfig, "--yes-apply-to", cluster.name}
		return c.einmal(p, append(append(args, more...), p.operator)...)
	}
	first := launch(t, in(c.staging))
	first.await("Ctrl-C stops the operator; the cluster keeps running, and the applied objects stay in it\n")
	p.expectOnScreen(first, "operator | my server is "+c.staging.server+"\n")

	output, code := run(t, in(c.staging))
	if code != 1 {
		t.Errorf("a second dev in the same cluster: exit code %d, want 1", code)
	}
	expectText(t, output, "einmal dev runs already for "+p.operator, "(process "+pidOf(first)+")", "remedy: ")

	second := launch(t, in(c.production, "--clean-up"))
	second.await("operator | my server is " + c.production.server + "\n")
	second.signal(syscall.SIGTERM)
	if code := second.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	c.pointAt(t, c.production)
	defer c.staging.writeKubeconfig(t)
	if err := syscall.Kill(operatorProcess(t, p.root), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.await("dev | the operator exited unexpectedly")
	between := first.await("operator | I am " + account + "\n")
	first.await("operator | my server is " + c.staging.server + "\n")
	if strings.Contains(between, c.production.server) {
		t.Errorf("the restarted operator was in production:\n%s", between)
	}
	first.signal(syscall.SIGTERM)
	if between := first.await("einmal: determine the commands that delete the objects created by this run: "); strings.Contains(between, "kubectl ") {
		t.Errorf("printed commands that would run in production:\n%s", between)
	}
	first.await("the context staging of kubeconfig " + c.staging.kubeconfig +
		" now leads to a different cluster than when einmal dev started: " + c.production.server + "\n")
	first.await("these objects stay in the cluster staging (" + c.staging.server + "): ")
	first.await("Namespace greeting-system")
	if code := first.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	expectNoFiles(t, filepath.Join(p.root, "cache"))
	c.staging.kubectl(t, "delete", "namespace/greeting-system", "clusterrole/greeter", "clusterrolebinding/greeter",
		"customresourcedefinition/greetings.test.einmal.dev")
	c.staging.expectNothingOf(t, "greet")
}

// pointAt makes the kubeconfig of staging lead to another cluster. The names in it stay the same.
func (c *clusters) pointAt(t *testing.T, other *controlPlane) {
	t.Helper()
	text, err := os.ReadFile(other.kubeconfig)
	if err == nil {
		text = bytes.ReplaceAll(text, []byte(other.name), []byte(c.staging.name))
		err = os.WriteFile(c.staging.kubeconfig, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
