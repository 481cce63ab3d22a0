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

// controlPlane is a devcluster that tests share, under a name of its own.
type controlPlane struct {
	name       string
	data       string // of the devcluster
	kubeconfig string // in which cluster and context have that name
	server     string
}

// startControlPlanes starts devclusters at the same time; they stop with the test.
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
		running = append(running, launch(t, exec.CommandContext(t.Context(), devcluster(t), "up", "--data", c.data)))
		t.Cleanup(func() { c.stop(t) })
	}
	for i, c := range planes {
		running[i].await("\nexport KUBECONFIG=")
		c.writeKubeconfig(t)
		c.server = c.kubectl(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	}
	return planes
}

// stop stops the cluster.
func (c *controlPlane) stop(t *testing.T) {
	t.Helper()
	_ = exec.CommandContext(context.Background(), devcluster(t), "down", "--data", c.data).Run()
}

// writeKubeconfig writes a kubeconfig with the name of the cluster.
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

// objects lists the objects that einmal dev and an operator may write. Those that Kubernetes itself writes again and
// again are listed without their version.
func (c *controlPlane) objects(t *testing.T) []string {
	t.Helper()
	const versioned = "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{\"\\n\"}{end}"
	const named = "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid}{\"\\n\"}{end}"
	list := c.kubectl(t, "get", "namespaces,customresourcedefinitions,clusterrolebindings", "-o", versioned) +
		c.kubectl(t, "get", "-A", "clusterroles,roles,rolebindings,serviceaccounts,configmaps,secrets,leases,deployments", "-o", named)
	lines := strings.Split(strings.TrimSpace(list), "\n")
	slices.Sort(lines)
	return lines
}

// settledObjects lists the objects once Kubernetes itself creates no more of them.
func (c *controlPlane) settledObjects(t *testing.T) []string {
	t.Helper()
	before := c.objects(t)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		<-tick.C
		now := c.objects(t)
		if slices.Equal(before, now) {
			return now
		}
		before = now
	}
	t.Fatalf("the objects of %s do not settle", c.name)
	return nil
}

// expectUnchanged fails if an object was created, changed or removed since before.
func (c *controlPlane) expectUnchanged(t *testing.T, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, c.objects(t)); diff != "" {
		t.Errorf("objects of %s (-before +now):\n%s", c.name, diff)
	}
}

// clusters are the control planes and folders of the tests that need two clusters.
type clusters struct {
	staging, production *controlPlane
	untouched           []string // the objects of production at the beginning
	goCache             string
}

// einmal returns a command with a cache directory of its own in the playground.
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
		{"another cluster is changed only when a person names it", otherClusterIsNamed},
		{"wrong and dangerous command lines", wrongCommandLines},
		{"restarts stay in the cluster", restartsStay},
		{"kubectl follows the devcluster, not $KUBECONFIG", kubectlFollowsTheDevcluster},
		{"a version that is not installed does not run", onlyInstalledVersionsRun},
		{"a refused command line is not tried again", refusedCommandLine},
		{"the end of a cluster that runs already is noticed", endOfClusterIsNoticed},
	} {
		passed := t.Run(test.name, func(t *testing.T) {
			test.run(t, c)
			c.production.expectUnchanged(t, c.untouched)
		})
		if !passed {
			return // what is left in the clusters would fail the others
		}
	}
}

// run runs a command to its end and returns its output and exit code.
func run(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	output, err := cmd.CombinedOutput()
	return string(output), exitCode(err)
}

// expectText fails unless all parts are in the text, in this order.
func expectText(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("no %q (in this order) in\n%s", part, text)
			return
		}
		rest = after
	}
}

// expectNoFiles fails if a regular file is below a directory. Locks of killed processes do not count.
func expectNoFiles(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			t.Errorf("%s is left", path)
		}
		return nil
	})
}

// operatorProcess returns the process id of the operator that runs from below a directory.
func operatorProcess(t *testing.T, dir string) int {
	t.Helper()
	for pid, line := range processes(t, dir) {
		if strings.Contains(line, "/operator run --kubeconfig") && !strings.Contains(line, " guard ") {
			return pid
		}
	}
	t.Fatalf("no operator among %v", processes(t, dir))
	return 0
}
