package acceptance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A container gets its grace period when the cluster stops. Nothing of the node is left after that, and only empty cgroups after a kill. The next
// start brings Pods back. A Pod whose volume is damaged waits, and does not write elsewhere.
func TestNodeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, c := upWithNode(t, dir)
	c.create(t, shellPod("slow", "trap 'sleep 1; echo stopped; exit 0' TERM; echo started; while :; do sleep 0.1; done", ""),
		claim("data", ""), mountedPod("writer", "data", "echo kept >/data/file"))
	c.awaitReady(t, "slow")
	c.awaitEnd(t, "writer")
	volume := c.filesOf(t, c.volumeOf(t, "data"))[0]
	stopped(t, u)
	c.logsOnDisk(t, "started", "stopped")
	eventually(t, func() error { return nothingLeftOf(dir) })
	damage(t, volume+".xfs")

	u = up(t, dir, "--node=real")
	c.client, c.dynamic = clients(t, u.kubeconfig)
	c.awaitRestart(t, "slow")
	c.create(t, mountedPod("reader", "data", "cat /data/file"))
	eventually(t, func() error { return c.hasEvent(t, "reader", `data" does not exist`) })
	if _, err := os.Stat(filepath.Join(volume, "data")); !os.IsNotExist(err) {
		t.Errorf("a volume that cannot be mounted has a directory for data: %v", err)
	}
	if err := u.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.wait()
	eventually(t, func() error { return runningOf(dir) })
	stopped(t, up(t, dir, "--node=real"))
	eventually(t, func() error { return nothingLeftOf(dir) })
}

// damage overwrites the beginning of a file system.
func damage(t *testing.T, file string) {
	t.Helper()
	out, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = out.WriteAt(make([]byte, 1<<20), 0) //nolint:mnd // More than a superblock.
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stopped stops a cluster.
func stopped(t *testing.T, u *upProcess) {
	t.Helper()
	if r := run(t, u.dir, "down"); r.code != 0 {
		t.Fatalf("down: %+v", r)
	}
	if code := u.wait(); code != 0 {
		t.Errorf("up exits with %d, want 0", code)
	}
}

// logsOnDisk checks what the container of the Pod slow has logged.
func (c inCluster) logsOnDisk(t *testing.T, wanted ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, ".devcluster", "node", "pods", "default_slow_*", "c", "0.log"))
	if err != nil || len(files) != 1 {
		t.Fatalf("found the logs %q: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if !strings.Contains(string(text), want) {
			t.Errorf("the container has not logged %q: %s", want, text)
		}
	}
}

// runningOf returns an error that names what is left of the node of a cluster: processes, mounts and loop devices.
func runningOf(dir string) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), filepath.Join(dir, ".devcluster")) {
			return fmt.Errorf("a process is left: %q", text)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		return fmt.Errorf("a mount is left: %w", err)
	}
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, device := range devices {
		file, err := os.ReadFile(device)
		if err == nil && strings.HasPrefix(string(file), dir) {
			return fmt.Errorf("a loop device is left: %s", device)
		}
	}
	return err
}

// nothingLeftOf also names cgroups.
func nothingLeftOf(dir string) error {
	if err := runningOf(dir); err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(dir, ".devcluster", "node", "kubelet.yaml"))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(config), "\ncgroupRoot: /")
	name, _, _ := strings.Cut(rest, "\n")
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err == nil && (name == "" || len(left) > 0) {
		err = fmt.Errorf("cgroups are left: %q, %q", name, left)
	}
	return err
}

// Wherever a kill hits, no process, no mount and no loop device is left, and the next start takes over the data.
func TestNodeSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, c := upWithNode(t, dir)
	c.create(t, shellPod("kept", "while :; do sleep 1; done", ""), claim("data", ""), mountedPod("writer", "data", "echo kept >/data/file"))
	c.awaitReady(t, "kept")
	c.awaitEnd(t, "writer")
	stopped(t, u)
	eventually(t, func() error { return nothingLeftOf(dir) })
	const kills, longest = 20, 8 * time.Second
	for range kills {
		moment := rand.N(longest)
		cmd := exec.CommandContext(t.Context(), binary(t), "up", "--node=real")
		cmd.Dir, cmd.Env = dir, environment()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(moment)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		t.Logf("killed after %s: %v", moment, cmd.Wait())
		eventually(t, func() error { return runningOf(dir) })
	}
	u = up(t, dir, "--node=real")
	c.client, c.dynamic = clients(t, u.kubeconfig)
	c.awaitRestart(t, "kept")
	c.create(t, mountedPod("reader", "data", "cat /data/file"))
	c.awaitEnd(t, "reader")
	if err := c.logged(t, "reader", "kept\n"); err != nil {
		t.Error(err)
	}
	stopped(t, u)
	eventually(t, func() error { return nothingLeftOf(dir) })
}
