package main_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// playground is a directory with a separate module that contains a copy of the test operator, so that tests can change
// its sources.
type playground struct {
	t        *testing.T
	root     string
	operator string
}

func newPlayground(t *testing.T) playground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := playground{t: t, root: root, operator: filepath.Join(root, "cmd", "einmal", "testdata", "operator")}
	if err := os.CopyFS(p.operator, os.DirFS("testdata/operator")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		p.write(name, string(data))
	}
	data, err := os.ReadFile("testdata/greetings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.write("greetings.yaml", string(data))
	return p
}

func (p playground) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.root, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p playground) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

const account = "system:serviceaccount:greeting-system:greeter"

func TestDevRunsOperatorFromSources(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	dev := start(t, p.root, "dev", "--fresh", "--apply", "greetings.yaml", p.operator)

	dev.await("\nexport KUBECONFIG=" + p.root + "/.devcluster/kubeconfig\n")
	dev.await("dev | applied the operator's CRDs: CustomResourceDefinition greetings.test.einmal.dev\n")
	dev.await("ServiceAccount greeting-system/greeter")
	dev.await("dev | the operator runs as " + account + "\n")
	dev.await("dev | applied Greeting default/world (greetings.yaml)\n")
	dev.await("greetings.yaml, document 2 (line 6): Greeting default/nagging was rejected by the API server:\n")
	dev.await("spec: Invalid value: four times is too often\n")
	dev.await(".spec.tmies: field not declared in schema")
	dev.await(" kubectl --data " + p.root + "/.devcluster get gr\n")
	dev.await("Ctrl-C stops the operator and the cluster\n")
	t.Run("under its own account", func(t *testing.T) { p.expectOnScreen(dev, "operator | I am "+account+"\n") })
	p.expectOnScreen(dev, "operator | Well hello, world\n")

	t.Run("kubectl reaches the cluster from a directory below", func(t *testing.T) {
		output, err := einmal(t, p.operator, "kubectl", "get", "gr", "-o", "name").CombinedOutput()
		if err != nil || string(output) != "greeting.test.einmal.dev/world\n" {
			t.Errorf("kubectl printed %q, error %v", output, err)
		}
	})

	t.Run("a change restarts it", func(t *testing.T) {
		source := "cmd/einmal/testdata/operator/word/word.go"
		p.write(source, strings.ReplaceAll(p.read(source), "Well", "Oh"))
		dev.await("dev | changed: word/word.go\n")
		dev.await("operator | goodbye\n")
		if between := dev.await("operator | Oh hello, world\n"); strings.Contains(between, "applied Greeting") {
			t.Error("the file of --apply was applied twice")
		}
		p.write("cmd/einmal/testdata/operator/word/word.txt", "good evening\n") // an embedded file
		dev.await("operator | Oh good evening, world\n")
	})

	t.Run("a failed build keeps the previous version running", func(t *testing.T) {
		source := "cmd/einmal/testdata/operator/main.go"
		good := p.read(source)
		p.write(source, strings.Replace(good, "func main() {", "import \"nowhere\"\nfunc main() {", 1))
		dev.await("dev | the build failed")
		if between := dev.await("dev | the previous version keeps running"); strings.Contains(between, "goodbye") {
			t.Error("the operator was stopped")
		}
		p.write(source, good)
		dev.await("operator | goodbye\n")
		dev.await("operator | Oh good evening, world\n")
	})

	t.Run("Ctrl-C stops the operator, then the cluster", func(t *testing.T) {
		dev.signal(syscall.SIGINT)
		dev.await("operator | goodbye\n")
		dev.await("dev | stopping the cluster …\n")
		dev.await("dev | stopped\n")
		if code := dev.end(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		expectNoProcesses(t, p.root)
	})
}

// expectOnScreen waits for a text anywhere on the screen.
func (p playground) expectOnScreen(dev *program, text string) {
	p.t.Helper()
	at := dev.seen
	dev.seen = 0
	dev.await(text)
	dev.seen = max(at, dev.seen)
}

func TestKilledDevLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	dev := start(t, p.root, "dev", p.operator, "--", "--crash-once", p.root+"/crashed")
	dev.await("dev | the operator exited unexpectedly (exit code 3)\n")
	dev.await("dev | restarting the operator in 1s")
	dev.await("operator | I am " + account + "\n")
	if running := processes(t, p.root); len(running) < 4 {
		t.Errorf("found only these processes, want at least 4: %v", running)
	}
	dev.signal(syscall.SIGKILL)
	dev.end()
	expectNoProcesses(t, p.root)

	t.Run("dev exits when its cluster exits", func(t *testing.T) {
		dev := start(t, p.root, "dev", p.operator)
		dev.await("operator | I am " + account + "\n")
		down := exec.CommandContext(t.Context(), devcluster(t), "down", "--data", p.root+"/.devcluster")
		if output, err := down.CombinedOutput(); err != nil {
			t.Fatalf("stopping the cluster: %v\n%s", err, output)
		}
		dev.await("the devcluster exited unexpectedly (exit code 0)")
		if code := dev.end(); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		expectNoProcesses(t, p.root)
	})
	t.Run("a closed terminal stops everything", func(t *testing.T) { closedTerminal(t, p) })
}

// closedTerminal checks that dev stops everything when its terminal is closed.
func closedTerminal(t *testing.T, p playground) {
	cmd := einmal(t, p.root, "dev", p.operator)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // the kernel sends SIGHUP
	dev, keyboard := onTerminal(t, cmd)
	dev.await("I am " + account) // the name of the stream is coloured
	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	dev.end()
	expectNoProcesses(t, p.root)
	expectNoFiles(t, filepath.Join(p.root, ".devcluster", "einmal"))
}

func TestDevUsesARunningClusterAndKeepsIt(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	data := filepath.Join(p.root, "other data")
	first := start(t, p.root, "dev", "--data", data, p.operator, "--", "--linger", "20s")
	kubeconfig := data + "/kubeconfig"
	first.await("\nexport KUBECONFIG='" + kubeconfig + "'\n")
	first.await("operator | I am " + account)

	output, err := einmal(t, p.root, "dev", "--fresh", "--data", data, p.operator).CombinedOutput()
	if code := exitCode(err); code != 1 || !bytes.Contains(output, []byte("down --data")) {
		t.Errorf("--fresh for a running cluster: exit code %d, output\n%s", code, output)
	}
	text, code := run(t, einmal(t, p.root, "dev", "--data", data, p.operator))
	if code != 1 {
		t.Errorf("a second dev of the same operator: exit code %d, want 1", code)
	}
	expectText(t, text, "einmal dev runs already for "+p.operator+" in this devcluster (process "+strconv.Itoa(first.cmd.Process.Pid)+")", "remedy: ")
	other := newPlayground(t) // dev refuses a second run for the same sources
	for name, args := range map[string][]string{
		"found by its data":     {"--data", data},
		"with a chosen account": {"--data", data, "--service-account", "default/default"},
	} {
		second := start(t, p.root, append(append([]string{"dev"}, args...), other.operator)...)
		second.await("dev | using the ")
		second.await("dev | the cluster is Kubernetes v")
		second.await("export KUBECONFIG='" + kubeconfig + "'\n")
		user := account
		if strings.HasPrefix(name, "with") {
			user = "system:serviceaccount:default:default"
		}
		second.await("operator | I am " + user + "\n")
		second.signal(syscall.SIGTERM)
		if code := second.end(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", name, code)
		}
	}
	if text, _ := first.screen.read(); strings.Contains(text, "cluster | stop") {
		t.Error("the cluster was stopped by an einmal dev that did not start it")
	}

	t.Run("a second Ctrl-C kills everything", func(t *testing.T) {
		first.signal(syscall.SIGINT)
		first.await("dev | stopping")
		<-time.After(300 * time.Millisecond) // an earlier signal would count as a duplicate
		first.signal(syscall.SIGINT)
		if code := first.end(); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		first.await("killed all processes after a second signal")
		expectNoProcesses(t, p.root)
	})
}

func TestErrorsAreReportedBeforeAClusterIsStarted(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	bare := filepath.Join(p.root, "bare")
	if err := os.MkdirAll(bare, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("bare/main.go", "package main\n\nfunc main() {}\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "see 'einmal --help'"},
		{[]string{"dev"}, 2, "missing argument OPERATOR_DIR"},
		{[]string{"dev", "--no-such-flag"}, 2, "unknown flag"},
		{[]string{"dev", "a", "b"}, 2, "expected one OPERATOR_DIR, got 2"},
		{[]string{"dev", "--context", "x", "a"}, 2, "unknown flag: --context"},
		{[]string{"dev", "--kubeconfig", "x", "a"}, 2, "unknown flag: --kubeconfig"},
		{[]string{"dev", "--yes-apply-to", "x", "a"}, 2, "unknown flag: --yes-apply-to"},
		{[]string{"dev", "--clean-up", "a"}, 2, "unknown flag: --clean-up"},
		{[]string{"develop"}, 2, `unknown command "develop"`},
		{[]string{"dev", p.root + "/none"}, 1, "no such file or directory"},
		{[]string{"dev", p.root}, 1, "find the Go package"},
		{[]string{"dev", bare}, 1, "remedy: create the directory with the operator's ServiceAccount"},
		{[]string{"dev", "--apply", "none.yaml", p.operator}, 1, "--apply none.yaml"},
		{[]string{"dev", "--devcluster", "/none", p.operator}, 1, "flag --devcluster: cannot run /none"},
		{[]string{"kubectl", "get", "pods"}, 1, "remedy: start a cluster"},
		{[]string{"version"}, 0, "einmal v0.0.0-test, commit unknown, go1."},
		{[]string{"--version"}, 0, "einmal v0.0.0-test, commit unknown, go1."},
		{[]string{"--help"}, 0, "einmal dev"},
		{[]string{"kubectl", "--help"}, 0, "kubectl controls"},
		{[]string{"kubectl", "get", "--help"}, 0, "kubectl get pods"},
		{[]string{"kubectl", "completion", "bash"}, 0, "__start_kubectl"},
		{[]string{"kubectl", "__complete", "rollout", "s"}, 0, "status"},
	} {
		output, err := einmal(t, p.root, c.args...).CombinedOutput()
		if code := exitCode(err); code != c.code || !bytes.Contains(output, []byte(c.want)) {
			t.Errorf("einmal %s: exit code %d, want %d and %q in\n%s", strings.Join(c.args, " "), code, c.code, c.want, output)
		}
	}
	if _, err := os.Stat(p.root + "/.devcluster"); err == nil {
		t.Error("a cluster was started")
	}
}

// exitCode returns the exit code of an error from os/exec, or -1 if the error has none.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}
