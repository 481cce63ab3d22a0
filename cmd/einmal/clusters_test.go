package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// controlPlane is a devcluster that tests share.
type controlPlane struct {
	name       string
	data       string // data directory of the devcluster
	kubeconfig string // kubeconfig in which the cluster and the context have the given name
	server     string
}

// startControlPlanes starts devclusters concurrently. They stop at the end of the test.
func startControlPlanes(t *testing.T, names ...string) []*controlPlane {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var planes []*controlPlane
	var running []*program
	for _, name := range names {
		c := &controlPlane{name: name, data: filepath.Join(root, name, ".devcluster"), kubeconfig: filepath.Join(root, name+".kubeconfig")}
		planes = append(planes, c)
		running = append(running, c.start(t))
		t.Cleanup(func() { c.stop(t) })
	}
	for i, c := range planes {
		running[i].await("\nexport KUBECONFIG=")
		c.writeKubeconfig(t)
		c.server = c.kubectl(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	}
	return planes
}

// start starts the cluster.
func (c *controlPlane) start(t *testing.T) *program {
	t.Helper()
	return launch(t, exec.CommandContext(t.Context(), devcluster(t), "up", "--data", c.data))
}

// stop stops the cluster.
func (c *controlPlane) stop(t *testing.T) {
	t.Helper()
	_ = exec.CommandContext(context.Background(), devcluster(t), "down", "--data", c.data).Run()
}

// writeKubeconfig writes a kubeconfig in which the cluster has its name.
func (c *controlPlane) writeKubeconfig(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("devcluster"), []byte(c.name))
	if err := os.WriteFile(c.kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl in the cluster and returns its output.
func (c *controlPlane) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), devcluster(t), append([]string{"kubectl", "--kubeconfig", filepath.Join(c.data, "kubeconfig")}, args...)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s in %s: %v\n%s", strings.Join(args, " "), c.name, err, output)
	}
	return string(output)
}

// objects lists the objects that einmal dev and an operator may write, with their resource versions. Leases, which
// Kubernetes itself updates regularly, are listed without.
func (c *controlPlane) objects(t *testing.T) []string {
	t.Helper()
	const versioned = "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{\"\\n\"}{end}"
	const named = "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid}{\"\\n\"}{end}"
	const kinds = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts," +
		"configmaps,secrets,deployments"
	list := c.kubectl(t, "get", "-A", kinds, "-o", versioned) + c.kubectl(t, "get", "-A", "leases", "-o", named)
	lines := strings.Split(strings.TrimSpace(list), "\n")
	slices.Sort(lines)
	return lines
}

// settledObjects waits until Kubernetes itself creates no more objects and then lists them.
func (c *controlPlane) settledObjects(t *testing.T) []string {
	t.Helper()
	before := c.objects(t)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); {
		<-tick.C
		now := c.objects(t)
		if slices.Equal(before, now) {
			return now
		}
		before = now
	}
	t.Fatalf("the objects of %s do not settle within %s", c.name, waitTimeout)
	return nil
}

// expectUnchanged fails if the list of objects differs from before.
func (c *controlPlane) expectUnchanged(t *testing.T, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, c.objects(t)); diff != "" {
		t.Errorf("objects of %s (-before +now):\n%s", c.name, diff)
	}
}

// clusters holds the control planes of the tests that need two clusters.
type clusters struct {
	staging, production *controlPlane
	untouched           []string // objects of production at the start
	goCache             string
}

// einmal returns a command that uses a cache directory in the playground.
func (c *clusters) einmal(p playground, args ...string) *exec.Cmd {
	cmd := einmal(p.t, p.root, args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(p.root, "cache"), "GOCACHE="+c.goCache)
	return cmd
}

func TestDevStaysInTheClusterThatItBeganWith(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	planes := startControlPlanes(t, "staging", "production")
	c := &clusters{staging: planes[0], production: planes[1], goCache: strings.TrimSpace(string(output))}
	c.untouched = c.production.settledObjects(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *clusters)
	}{
		{"changing an existing cluster requires confirmation", otherClusterIsNamed},
		{"wrong and dangerous command lines", wrongCommandLines},
		{"restarts stay in the cluster", restartsStay},
		{"printed lines stay in the context", linesToCopyStayInTheContext},
		{"kubectl follows the devcluster, not $KUBECONFIG", kubectlFollowsTheDevcluster},
		{"a version that is not installed does not run", onlyInstalledVersionsRun},
		{"a rejected command line is not retried", refusedCommandLine},
		{"the exit of an already running cluster is noticed", endOfClusterIsNoticed},
	} {
		passed := t.Run(test.name, func(t *testing.T) {
			test.run(t, c)
			c.production.expectUnchanged(t, c.untouched)
		})
		if !passed {
			return // objects left in the clusters would make the other tests fail
		}
	}
}

// run runs a command until it exits and returns its output and exit code.
func run(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	output, err := cmd.CombinedOutput()
	return string(output), exitCode(err)
}

// expectText fails unless the text contains all parts in this order.
func expectText(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("no %q (after the previous parts) in\n%s", part, text)
			return
		}
		rest = after
	}
}

// expectNoFiles fails if there is a regular file below a directory.
func expectNoFiles(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			t.Errorf("file left behind: %s", path)
		}
		return nil
	})
}

// operatorProcess returns the process ID of the operator whose program is below a directory.
func operatorProcess(t *testing.T, dir string) int {
	t.Helper()
	for pid, line := range processes(t, dir) {
		if strings.Contains(line, "/operator run --kubeconfig") && !strings.Contains(line, " reaper ") {
			return pid
		}
	}
	t.Fatalf("no operator among %v", processes(t, dir))
	return 0
}
