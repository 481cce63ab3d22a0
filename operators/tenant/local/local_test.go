package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/einmaltest"
)

// TestARunGoesOnWhereTheLastOneWasKilled does what "make run OPERATOR=tenant" does: the tenant of the samples gets ready, the lines that are
// printed log in, no password is on the screen, and after a kill the same credentials are found again.
func TestARunGoesOnWhereTheLastOneWasKilled(t *testing.T) {
	p := newPlace(t)
	run := p.start(t)
	lines := run.lines(t)
	p.logIn(t, lines)
	first := p.secrets(t)
	if err := run.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.ended
	p.awaitEnd(t, lines)
	run.hides(t, first)

	run = p.start(t)
	p.logIn(t, run.lines(t))
	run.shows(t, "in another terminal:  ") // The operator runs again, too.
	again := p.secrets(t)
	for name, secret := range first {
		if now := again[name]; secret.UID != now.UID || secret.ResourceVersion != now.ResourceVersion {
			t.Errorf("the Secret %s was written again: version %s of %s, was %s of %s", name, now.ResourceVersion, now.UID, secret.ResourceVersion, secret.UID)
		}
	}
	t.Run("the examples of the documentation are valid", func(t *testing.T) {
		examples := filepath.Join(p.sources, "operators", "tenant", "config", "examples")
		if said, err := p.kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", examples); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	t.Run("a second run beside it is refused", func(t *testing.T) {
		second := p.command(t, "bin/einmal", "dev", "nothing")
		said, err := second.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "stop that one first") {
			t.Errorf("error %v, and it says %s", err, said)
		}
	})
	if err := run.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	run.await(t, "dev | the operator stopped")
	run.await(t, "dev | stopped\n")
	run.await(t, "servers | stopped\n")
	<-run.ended
	if code := run.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	p.awaitEnd(t, lines)
	run.hides(t, again)
}

// place is a folder with the programs in it.
type place struct{ root, sources string }

func newPlace(t *testing.T) place {
	t.Helper()
	sources, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	p := place{root: t.TempDir(), sources: sources}
	// The operator too, although einmal dev builds it again: what is compiled here is not compiled while a run is waited for.
	for program, source := range map[string]string{
		"local": "./operators/tenant/local", "einmal": "./cmd/einmal", "operator": "./operators/tenant",
	} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(p.root, "bin", program), source)
		build.Dir = sources
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", source, err, said)
		}
	}
	t.Cleanup(func() {
		if home, err := os.ReadFile(filepath.Join(p.root, "servers", "postgres-is-in")); err == nil {
			_ = os.RemoveAll(strings.TrimSpace(string(home)))
		}
	})
	return p
}

// command is the program with a command to run beside the servers.
func (p place) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(p.root, "bin", "local"), append([]string{"servers"}, args...)...)
	command.Dir, command.Env = p.root, p.environment()
	return command
}

func (p place) environment() []string {
	env := os.Environ()
	if os.Getenv("EINMAL_DEVCLUSTER") == "" {
		env = append(env, "EINMAL_DEVCLUSTER="+filepath.Join(p.sources, "bin", "devcluster"))
	}
	return env
}

// running is a run, with its screen.
type running struct {
	command *exec.Cmd
	ended   chan struct{}

	mu     sync.Mutex
	screen bytes.Buffer
	seen   int
}

func (r *running) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.screen.Write(text)
}

func (p place) start(t *testing.T) *running {
	t.Helper()
	operator := filepath.Join(p.sources, "operators", "tenant")
	r := &running{ended: make(chan struct{}), command: p.command(t, "bin/einmal", "dev",
		"--apply", "servers/manifests", "--apply", filepath.Join(operator, "config", "samples"), operator)}
	r.command.Stdout, r.command.Stderr = r, r
	r.command.WaitDelay = time.Minute
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.command.Wait()
	}()
	t.Cleanup(func() {
		_ = r.command.Process.Signal(syscall.SIGTERM)
		<-r.ended
		if t.Failed() {
			t.Logf("the screen:\n%s", r.screen.String())
		}
	})
	return r
}

// silence is how long a run may print nothing while a text is awaited. A slow machine prints late, but a run that hangs prints nothing.
const silence = 3 * time.Minute

// await waits for a text behind what was awaited last, and returns what is between.
func (r *running) await(t *testing.T, text string) string {
	t.Helper()
	deadline, printed := time.NewTimer(silence), 0
	defer deadline.Stop()
	for over := false; ; {
		r.mu.Lock()
		screen := r.screen.String()
		if before, _, found := strings.Cut(screen[r.seen:], text); found {
			r.seen += len(before) + len(text)
			r.mu.Unlock()
			return before
		}
		r.mu.Unlock()
		if len(screen) > printed {
			printed = len(screen)
			deadline.Reset(silence)
		}
		if over {
			t.Fatalf("it ended without %q on the screen", text)
		}
		select {
		case <-deadline.C:
			t.Fatalf("no %q on the screen, and nothing new on it for %s", text, silence)
		case <-r.ended:
			over = true
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// shows waits for a text that may have come before what was awaited last.
func (r *running) shows(t *testing.T, text string) {
	t.Helper()
	r.mu.Lock()
	r.seen = 0
	r.mu.Unlock()
	r.await(t, text)
}

// lines are those that log in.
func (r *running) lines(t *testing.T) string {
	t.Helper()
	r.await(t, "the tenant acme is ready. To log in, in another terminal, in this folder:\n")
	const last = `-U "$(secret acme.reports.db username)" t_acme`
	return r.await(t, last) + last
}

// hides shows that no password is on the screen.
func (r *running) hides(t *testing.T, secrets map[string]corev1.Secret) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, secret := range secrets {
		for _, key := range []string{"password", "dsn"} {
			if value := secret.Data[key]; len(value) > 0 && bytes.Contains(r.screen.Bytes(), value) {
				t.Errorf("the %s of Secret %s is on the screen", key, name)
			}
		}
	}
}

// logIn runs the printed lines, as a user in another terminal does.
func (p place) logIn(t *testing.T, lines string) {
	t.Helper()
	said := ""
	for _, line := range strings.Split(lines, "\n")[1:] {
		secret, _, _ := strings.Cut(lines, "\n")
		switch {
		case strings.Contains(line, "psql"):
			line += ` -Atc 'SELECT session_user'`
		default:
			line += ` SET acme:greeting hello`
		}
		shell := exec.CommandContext(t.Context(), "bash", "-c", secret+"\n"+line)
		shell.Dir, shell.Env = p.root, p.environment()
		output, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		said += string(output)
	}
	if want := "t_acme_web_a\nOK\nt_acme_reports_a\n"; said != want {
		t.Errorf("the lines say %q, want %q", said, want)
	}
}

// kubectl runs kubectl in the cluster of the folder.
func (p place) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(p.root, "bin", "einmal"), append([]string{"kubectl"}, args...)...)
	command.Dir, command.Env = p.root, p.environment()
	return command.Output()
}

// secrets are the credentials, and those of the admins.
func (p place) secrets(t *testing.T) map[string]corev1.Secret {
	t.Helper()
	found := map[string]corev1.Secret{}
	for _, namespace := range []string{recordsNamespace, "tenant-system"} {
		output, err := p.kubectl(t.Context(), "get", "secrets", "--namespace", namespace, "--output", "json")
		if err != nil {
			t.Fatal(err)
		}
		var list corev1.SecretList
		if err := json.Unmarshal(output, &list); err != nil {
			t.Fatal(err)
		}
		for _, secret := range list.Items {
			found[namespace+"/"+secret.Name] = secret
		}
	}
	if len(found) < 8 {
		t.Errorf("only %d Secrets were found", len(found))
	}
	return found
}

// awaitEnd waits until nothing runs any more.
func (p place) awaitEnd(t *testing.T, lines string) {
	t.Helper()
	einmaltest.Eventually(t, "nothing runs", func(ctx context.Context) error {
		_, err := p.kubectl(ctx, "version")
		var failed *exec.ExitError
		if !errors.As(err, &failed) || !strings.Contains(string(failed.Stderr), "none is running on") {
			return os.ErrExist
		}
		for _, port := range regexp.MustCompile(` -p (\d+) `).FindAllStringSubmatch(lines, -1) {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port[1]))
			if err == nil {
				_ = connection.Close()
				return os.ErrExist
			}
		}
		return nil
	})
}
