package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// otherClusterIsNamed shows that dev says what it will do to another cluster, and does nothing unless a person has named
// the cluster.
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
		"ClusterRoleBinding greeter (new)\n", "Greeting world (new)\n", "stays when einmal dev ends",
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
	expectText(t, output, `must be the name of the cluster that will be changed, "production" at `+c.production.server+`, got "staging"`)
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
	dev.await("Ctrl-C stops the operator and removes what this run created; the cluster runs on")
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

// restartsStay shows that a restarted operator stays in its cluster, although another dev works on the same operator in
// another cluster and the kubeconfig file has changed.
func restartsStay(t *testing.T, c *clusters) {
	p := newPlayground(t)
	in := func(cluster *controlPlane, more ...string) *exec.Cmd {
		args := []string{"dev", "--kubeconfig", cluster.kubeconfig, "--yes-apply-to", cluster.name}
		return c.einmal(p, append(append(args, more...), p.operator)...)
	}
	first := launch(t, in(c.staging))
	first.await("Ctrl-C stops the operator; the cluster runs on, and what was applied stays there\n")
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
	first.await("dev | the operator ended by itself")
	between := first.await("operator | I am " + account + "\n")
	first.await("operator | my server is " + c.staging.server + "\n")
	if strings.Contains(between, c.production.server) {
		t.Errorf("the restarted operator was in production:\n%s", between)
	}
	first.signal(syscall.SIGTERM)
	first.await("dev | what this run created stays in the cluster staging (" + c.staging.server + "). These commands remove it:\n")
	commands := first.await("dev | stopped\n")
	if code := first.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectNoFiles(t, filepath.Join(p.root, "cache"))
	c.staging.writeKubeconfig(t)
	runCommands(t, commands)
	left := c.staging.kubectl(t, "get", "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces", "-o", "name")
	for line := range strings.Lines(left) {
		if strings.Contains(line, "greet") {
			t.Errorf("the commands leave %s", line)
		}
	}
}

// pointAt makes the kubeconfig of staging lead to another cluster.
func (c *clusters) pointAt(t *testing.T, other *controlPlane) {
	t.Helper()
	text, err := os.ReadFile(other.kubeconfig)
	if err == nil {
		err = os.WriteFile(c.staging.kubeconfig, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runCommands runs the lines that are commands, as a person does who copies them.
func runCommands(t *testing.T, lines string) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\nexec '" + devcluster(t) + "' kubectl \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, "kubectl ") {
			continue
		}
		count++
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	if count < 5 {
		t.Errorf("%d commands in\n%s", count, lines)
	}
}
