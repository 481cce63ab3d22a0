package cluster_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// A control plane gets a port by chance, which another one had before. What kubectl had learned of that one's kinds would be taken for
// true: a kind would be asked for in a version that is not served.
func TestKubectlKnowsNothingOfOtherControlPlanes(t *testing.T) {
	einmal := einmalProgram(t) // The Go command keeps its cache in the home.
	home := t.TempDir()
	t.Setenv("HOME", home)
	c := cluster.Shared(t)
	c.Kubectl(t, "", "get", "namespaces")
	left, err := os.ReadDir(home)
	if err != nil || len(left) > 0 {
		t.Errorf("kubectl keeps in the home of who runs the tests: %v, %v", left, err)
	}
	t.Run("einmal kubectl and devcluster kubectl reach no other server", func(t *testing.T) { noOtherServer(t, c, einmal) })
}

// einmalProgram returns the path of the program einmal. "make build" puts it beside devcluster, which EINMAL_DEVCLUSTER names. If it is not there,
// or older than its sources, einmalProgram builds it.
func einmalProgram(t *testing.T) string {
	t.Helper()
	einmal := filepath.Join(filepath.Dir(cluster.Program(t)), "einmal")
	if built, err := os.Stat(einmal); err == nil && built.ModTime().After(lastChange(t, filepath.FromSlash("../../../cmd/einmal"))) {
		return einmal
	}
	einmal = filepath.Join(t.TempDir(), "einmal")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", einmal, "github.com/einmal-operators/einmal/cmd/einmal").CombinedOutput()
	if err != nil {
		t.Fatalf("build einmal: %v\n%s", err, output)
	}
	return einmal
}

// lastChange returns when a file in a folder was last changed. The program einmal imports no other package of this repository.
func lastChange(t *testing.T, folder string) time.Time {
	t.Helper()
	var last time.Time
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := entry.Info()
		if err == nil && about.ModTime().After(last) {
			last = about.ModTime()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// noOtherServer runs both kubectl commands with everything that could select another server: arguments, the environment, the files of a user
// and a changed kubeconfig of the control plane.
func noOtherServer(t *testing.T, c *cluster.Cluster, einmal string) {
	other := startOtherServer(t)
	own := copyData(t, filepath.Dir(c.Kubeconfig))
	programs := kubectls(t, einmal, own, other)
	for _, kubectl := range programs {
		if output, code := kubectl.run(t, "get", "namespaces", "--output", "name"); code != 0 || !strings.Contains(output, "namespace/default\n") {
			t.Errorf("%s in the folder of the control plane: exit code %d\n%s", kubectl, code, output)
		}
		for _, flags := range other.flags() {
			kubectl.expectRefusal(t, append([]string{"get", "namespaces"}, flags...), flags)
		}
		for _, flags := range [][]string{{"--kubeconfig", other.kubeconfig}, {"-s" + other.url}} {
			kubectl.expectRefusal(t, append([]string{"config", "view"}, flags...), flags)
			kubectl.expectRefusal(t, append([]string{"version"}, flags...), flags)
			kubectl.expectRefusal(t, append(slices.Clone(flags), "get", "namespaces"), flags)
			kubectl.expectRefusal(t, append([]string{"--data", own, "get", "namespaces"}, flags...), flags)
		}
		kubectl.expectRefusal(t, []string{"get", "namespaces", "-As", other.url}, []string{"-s"})
		kubectl.expectRefusal(t, []string{"get", "namespaces", "-As" + other.url}, []string{"-s"})
		if output, code := kubectl.run(t, "other"); code == 0 || !strings.Contains(output, `unknown command "other"`) {
			t.Errorf("%s runs a plugin: exit code %d\n%s", kubectl, code, output)
		}
	}
	changedKubeconfig(t, programs, own, other)
	other.expectNoConnection(t)
}

// flags returns the flags of kubectl that select the other server, or another one than that of the control plane.
func (o *otherServer) flags() [][]string {
	return [][]string{
		{"--kubeconfig", o.kubeconfig},
		{"--kubeconfig=" + o.kubeconfig},
		{"--kubeconfig", ""},
		{"--kubeconfig="},
		{"--context", "other"},
		{"--context="},
		{"--cluster", "other"},
		{"--cluster=other"},
		{"--server", o.url},
		{"--server=" + o.url},
		{"--server="},
		{"-s", o.url},
		{"-s" + o.url},
		{"-s=" + o.url},
	}
}

// changedKubeconfig checks that no command follows a kubeconfig of the control plane that leads to the other server.
func changedKubeconfig(t *testing.T, programs []kubectl, own string, other *otherServer) {
	t.Helper()
	file := filepath.Join(own, "kubeconfig")
	good := readFile(t, file)
	for what, change := range map[string][]string{
		"another server":  {"config", "set-cluster", "devcluster", "--server", other.url},
		"another proxy":   {"config", "set-cluster", "devcluster", "--proxy-url", other.url},
		"another context": {"config", "set-context", "devcluster", "--cluster", "other"},
	} {
		writeFile(t, file, strings.Replace(good, "clusters:\n", "clusters:\n- {name: other, cluster: {server: \""+other.url+"\"}}\n", 1))
		if output, code := programs[0].run(t, change...); code != 0 {
			t.Fatalf("kubectl %v: exit code %d\n%s", change, code, output)
		}
		for _, kubectl := range programs {
			output, code := kubectl.run(t, "get", "namespaces")
			if code == 0 || !strings.Contains(output, file) || !strings.Contains(output, "remedy: ") {
				t.Errorf("%s, kubeconfig with %s: exit code %d\n%s", kubectl, what, code, output)
			}
		}
	}
	writeFile(t, file, good)
}

// kubectl is one of the two commands, in the folder of a control plane.
type kubectl struct {
	program, folder string
	env             []string
}

func (k kubectl) String() string { return filepath.Base(k.program) + " kubectl" }

// kubectls returns both commands, with an environment and a home that name the other server wherever a program may look.
func kubectls(t *testing.T, einmal, data string, other *otherServer) []kubectl {
	t.Helper()
	bin, home, devcluster := t.TempDir(), t.TempDir(), cluster.Program(t)
	writeFile(t, filepath.Join(home, ".kube", "config"), readFile(t, other.kubeconfig))
	writeFile(t, filepath.Join(home, ".kube", "kuberc"), "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"+
		"defaults: [{command: get, options: [{name: server, default: \""+other.url+"\"}]}]\n")
	plugin := filepath.Join(bin, "kubectl-other")
	writeFile(t, plugin, "#!/bin/sh\nexit 0\n")
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(other.address)
	env := append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"), "EINMAL_DEVCLUSTER="+devcluster, "KUBECONFIG="+other.kubeconfig,
		"KUBECACHEDIR="+t.TempDir(), "HTTPS_PROXY="+other.url, "HTTP_PROXY="+other.url, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	folder := filepath.Dir(data)
	return []kubectl{{devcluster, folder, env}, {einmal, folder, env}}
}

// run runs the command and returns its output and exit code.
func (k kubectl) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, k.program, append([]string{"kubectl"}, args...)...)
	command.Dir, command.Env = k.folder, k.env
	output, _ := command.CombinedOutput() // The exit code has the error.
	return string(output), command.ProcessState.ExitCode()
}

// expectRefusal checks that the command fails with an error that names the flag and the remedy.
func (k kubectl) expectRefusal(t *testing.T, args, flags []string) {
	t.Helper()
	output, code := k.run(t, args...)
	name, _, _ := strings.Cut(flags[0], "=")
	if name == "--server" || strings.HasPrefix(name, "-s") {
		name = "-s, --server"
	}
	if code == 0 || !strings.Contains(output, `"`+name+`" flag: `) || !strings.Contains(output, "remedy: ") {
		t.Errorf("%s %s: exit code %d, want an error that names the flag %s and the remedy, got\n%s", k, strings.Join(args, " "), code, name, output)
	}
}

// otherServer is a server that no command may reach.
type otherServer struct {
	address, url, kubeconfig string
	connections              chan struct{}
}

// startOtherServer starts the server and writes a kubeconfig for it.
func startOtherServer(t *testing.T) *otherServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address := listener.Addr().String()
	o := &otherServer{
		address: address, url: "http://" + address, kubeconfig: filepath.Join(t.TempDir(), "other.kubeconfig"), connections: make(chan struct{}, 1000),
	}
	writeFile(t, o.kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: other\n"+
		"clusters: [{name: other, cluster: {server: \""+o.url+"\"}}]\ncontexts: [{name: other, context: {cluster: other}}]\n")
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
			o.connections <- struct{}{}
		}
	}()
	return o
}

// expectNoConnection checks that the first connection to the server is the one that it makes itself, as the server's kubeconfig says.
func (o *otherServer) expectNoConnection(t *testing.T) {
	t.Helper()
	if n := len(o.connections); n > 0 {
		t.Errorf("%d connections to another server", n)
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil || config.Host != o.url {
		t.Fatalf("the kubeconfig of the other server leads to %v, error %v", config, err)
	}
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	<-o.connections
	// The server accepts connections one after the other.
	if n := len(o.connections); n > 0 {
		t.Errorf("%d connections to another server", n)
	}
}

// copyData makes a data directory of a control plane that is running on another one. It counts as running as long as its lock is held.
func copyData(t *testing.T, data string) string {
	t.Helper()
	own := filepath.Join(t.TempDir(), ".devcluster")
	for _, name := range []string{"devcluster-data", "instance.json", "kubeconfig"} {
		writeFile(t, filepath.Join(own, name), strings.ReplaceAll(readFile(t, filepath.Join(data, name)), data, own))
	}
	lock, err := os.Create(filepath.Join(own, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return own
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
