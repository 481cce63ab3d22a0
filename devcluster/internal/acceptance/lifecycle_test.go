package acceptance

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLifecycle runs several clusters on the same data directory, one after the
// other.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if s := readStatus(t, dir); s.Running {
		t.Error("status says running before the first start")
	}
	server := firstRun(t, dir)
	killedRun(t, dir, server)
	recoveredRun(t, dir)
	freshRun(t, dir)
	damagedRun(t, dir)
}

// firstRun creates an object, stops by SIGTERM and returns the server's URL.
func firstRun(t *testing.T, dir string) string {
	t.Helper()
	u := up(t, dir)
	eventually(t, func() error { // standard error is read concurrently
		if !strings.Contains(u.errors(), "ready after ") {
			return errors.New("up does not print the time until it is ready")
		}
		return nil
	})
	want := filepath.Join(dir, ".devcluster", "kubeconfig")
	if u.kubeconfig != want {
		t.Errorf("the kubeconfig is %s, want %s", u.kubeconfig, want)
	}
	checkMode(t, want, 0o600)
	checkMode(t, filepath.Dir(want), 0o700|os.ModeDir)
	client, _ := clients(t, u.kubeconfig)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := readStatus(t, dir)
	for _, c := range s.Components {
		if !c.Healthy {
			t.Errorf("%s is not healthy", c.Name)
		}
	}
	if s.PID != u.cmd.Process.Pid || s.Kubeconfig != want || s.Version != kubernetesVersion(t) {
		t.Errorf("unexpected status: %+v", s)
	}
	statusWithoutKubeconfig(t, dir, want)
	second := run(t, dir, "up")
	if second.code != 1 || !strings.Contains(second.stderr, "process "+strconv.Itoa(s.PID)) {
		t.Errorf("a second up exits with %d and prints %q; want 1 and process %d", second.code, second.stderr, s.PID)
	}
	// An open watch must not delay the stop.
	watch, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	terminate(t, u)
	if strings.Contains(u.errors(), "killed") {
		t.Error("a component had to be killed")
	}
	return s.Server
}

// statusWithoutKubeconfig checks that a running cluster counts as running, with its
// health, after its kubeconfig was deleted.
func statusWithoutKubeconfig(t *testing.T, dir, kubeconfig string) {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = os.Remove(kubeconfig)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, text, kubectl := readStatus(t, dir), run(t, dir, "status"), run(t, dir, "kubectl", "get", "nodes")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Components {
		if !c.Healthy {
			t.Errorf("without the kubeconfig %s is not healthy", c.Name)
		}
	}
	remedy := "by a restart, which keeps the data: devcluster down --data " + filepath.Dir(kubeconfig) + " && devcluster up --data "
	if !s.Running || len(s.Components) != 6 || !strings.Contains(text.stderr, kubeconfig) || !strings.Contains(text.stderr, remedy) {
		t.Errorf("status without the kubeconfig: %+v\n%+v", s, text)
	}
	if kubectl.code != 1 || !strings.Contains(kubectl.stderr, remedy) {
		t.Errorf("kubectl without the kubeconfig: %+v", kubectl)
	}
}

func checkMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

// terminate stops a cluster by SIGTERM and checks that all its processes exit in
// time.
func terminate(t *testing.T, u *upProcess) {
	t.Helper()
	processes := pids(t, u.dir)
	start := time.Now()
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := u.wait(); code != 0 {
		t.Errorf("up exits with %d after SIGTERM, want 0", code)
	}
	if took := time.Since(start); took > stopLimit {
		t.Errorf("stopping took %s, want at most %s", took, stopLimit)
	}
	if err := gone(processes); err != nil {
		t.Error(err)
	}
}

// killedRun checks that the data of the first run is there, and is killed.
func killedRun(t *testing.T, dir, server string) {
	t.Helper()
	u := up(t, dir)
	client, _ := clients(t, u.kubeconfig)
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the data of the previous run is missing: %v", err)
	}
	if s := readStatus(t, dir); s.Server != server {
		t.Errorf("the server is %s, want %s as in the previous run", s.Server, server)
	}
	processes := pids(t, dir)
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	u.wait()
	eventually(t, func() error { return gone(processes) })
}

// recoveredRun starts after a kill while another program uses the port, and exits
// because a component is killed.
func recoveredRun(t *testing.T, dir string) {
	t.Helper()
	state, err := os.ReadFile(filepath.Join(dir, ".devcluster", "port"))
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(state)))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	u := up(t, dir)
	for _, note := range []string{"did not exit cleanly", "is in use"} {
		if !strings.Contains(u.errors(), note) {
			t.Errorf("up does not print %q:\n%s", note, u.errors())
		}
	}
	client, _ := clients(t, u.kubeconfig)
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the data did not survive a kill: %v", err)
	}
	processes := pids(t, dir)
	if err := syscall.Kill(processes["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := u.wait(); code != 1 {
		t.Errorf("up exits with %d after a component was killed, want 1", code)
	}
	if text := u.errors(); !strings.Contains(text, "kube-scheduler exited unexpectedly (signal: killed)") ||
		!strings.Contains(text, "kube-scheduler.log") {
		t.Errorf("the message does not name the component and its log:\n%s", text)
	}
	if err := gone(processes); err != nil {
		t.Error(err)
	}
}

// freshRun starts with --fresh in a directory that also has files of the user, and
// is stopped by "down".
func freshRun(t *testing.T, dir string) {
	t.Helper()
	notes := filepath.Join(dir, ".devcluster", "notes.txt")
	mine := filepath.Join(dir, ".devcluster", "logs", "mine.txt")
	writeFile(t, notes, "")
	writeFile(t, mine, "")
	u := up(t, dir, "--fresh", "--nodes", "3")
	client, _ := clients(t, u.kubeconfig)
	if !strings.Contains(u.errors(), "note: kept logs/mine.txt, notes.txt") {
		t.Errorf("up does not name the files that it keeps:\n%s", u.errors())
	}
	checkMode(t, notes, 0o600)
	checkMode(t, mine, 0o600)
	_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("--fresh kept the data: %v", err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Errorf("there are %d nodes, error %v, want 3", len(nodes.Items), err)
	}
	processes := pids(t, dir)
	if r := run(t, dir, "down"); r.code != 0 || !strings.Contains(r.stdout, "stopped process ") {
		t.Errorf("down: %+v", r)
	}
	if code := u.wait(); code != 0 {
		t.Errorf("up exits with %d after down, want 0", code)
	}
	if err := gone(processes); err != nil {
		t.Error(err)
	}
	if r := run(t, dir, "down"); r.code != 0 || !strings.Contains(r.stdout, "no cluster is running") {
		t.Errorf("down when no cluster is running: %+v", r)
	}
	if s := readStatus(t, dir); s.Running {
		t.Error("status says running after down")
	}
}

// damagedRun checks the error of a start with a damaged database.
func damagedRun(t *testing.T, dir string) {
	t.Helper()
	database := filepath.Join(dir, ".devcluster", "etcd", "member", "snap", "db")
	if err := os.WriteFile(database, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, "up")
	if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "etcd exited unexpectedly") ||
		!strings.Contains(r.stderr, "up --fresh") || strings.Contains(r.stderr, "goroutine") || strings.Contains(r.stderr, ".go:") {
		t.Errorf("up with a damaged database: %+v", r)
	}
	if s := readStatus(t, dir); s.Running {
		t.Error("status says running after a failed start")
	}
}

// TestEndOfDescriptor stops a starting cluster by --exit-with-fd.
func TestEndOfDescriptor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "with space")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	u := launch(t, dir)
	eventually(t, func() error {
		if !strings.Contains(u.errors(), "etcd ") {
			return errors.New("etcd has not started")
		}
		return nil
	})
	start := time.Now()
	if err := u.hold.Close(); err != nil {
		t.Fatal(err)
	}
	if code := u.wait(); code != 0 {
		t.Errorf("up exits with %d, want 0", code)
	}
	if took := time.Since(start); took > stopLimit {
		t.Errorf("stopping took %s, want at most %s", took, stopLimit)
	}
	if s := readStatus(t, dir); s.Running {
		t.Error("status says running after the end of the descriptor")
	}
}

// TestRefusals checks starts that devcluster refuses.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	precious := filepath.Join(foreign, "precious")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, []byte("apiVersion: v1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"foreign directory":  {[]string{"--data", foreign, "--fresh"}, 1, "choose another directory with --data"},
		"file in the way":    {[]string{"--data", filepath.Join(precious, "data")}, 1, "choose another one with --data"},
		"foreign kubeconfig": {[]string{"--kubeconfig", precious}, 1, "name another file with --kubeconfig"},
		"number of nodes":    {[]string{"--nodes", "-1"}, 2, "flag --nodes: must be between"},
		"closed descriptor":  {[]string{"--exit-with-fd", "77"}, 2, "must be an open file descriptor, got 77"},
	} {
		r := run(t, dir, append([]string{"up"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", name, r.code, r.stderr, c.code, c.want)
		}
	}
	if content, err := os.ReadFile(precious); err != nil || string(content) != "apiVersion: v1\n" {
		t.Errorf("the file of the user has changed to %q, %v", content, err)
	}
	if r := run(t, dir, "component", "etcd", "etcd"); r.code != 2 {
		t.Errorf("a component started by hand: %+v", r)
	}
}

// checkLoopback checks that the server listens on the loopback interface.
func checkLoopback(t *testing.T, server string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil || u.Hostname() != "127.0.0.1" {
		t.Errorf("the server is %s, %v", server, err)
	}
}

// status and up name what a machine lacks for a real node.
func TestWhatARealNodeNeedsIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	without := append(environment(), "PATH="+dir)
	remedy := "apt-get install --no-install-recommends containerd runc containernetworking-plugins nftables xfsprogs\n"
	if r := runIn(t, dir, without, "status"); !strings.Contains(r.stdout, "\nreal node  not possible: nft is not installed (package nftables)\n") ||
		!strings.Contains(r.stdout, "\nremedy     "+remedy) {
		t.Errorf("status: %+v", r)
	}
	if r := runIn(t, dir, without, "up", "--node=real"); r.code != 1 || !strings.Contains(r.stderr, "\n  nft is not installed (package nftables)\n") ||
		!strings.Contains(r.stderr, "\nremedy: "+remedy) {
		t.Errorf("up: %+v", r)
	}
}
