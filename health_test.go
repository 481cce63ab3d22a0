package einmal

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/engine"
)

func probed(ready *bool) *Operator {
	op := New("op.example.com")
	For[corev1.ConfigMap](op).OnCreate("x", func(context.Context, *Change[corev1.ConfigMap]) error { return nil })
	op.OnProbe("database", func(context.Context) (any, error) {
		if !*ready {
			return nil, errors.New("no connection with password=hunter2hunter2")
		}
		return map[string]int{"connections": 3}, nil
	})
	op.OnProbe("disk", func(context.Context) (any, error) { return "fine", nil })
	return op
}

// begun is a driver whose startup handlers are done.
func begun(t *testing.T) *engine.Operator {
	t.Helper()
	driver := &engine.Operator{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := driver.Start(ended); err != nil {
		t.Fatal(err)
	}
	return driver
}

// Scenario 101 in part: what probes tell is shown as JSON, and one that fails makes the answer a 500.
func TestProbesAreShownOnTheHealthPort(t *testing.T) {
	ready := true
	op := probed(&ready)
	look := func(driver *engine.Operator, path string) (int, string) {
		answer := httptest.NewRecorder()
		op.health(driver).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	expect := func(driver *engine.Operator, path string, code int, text string) {
		t.Helper()
		if gotCode, got := look(driver, path); gotCode != code || got != text {
			t.Errorf("%s: %d %s, want %d %s", path, gotCode, got, code, text)
		}
	}
	driver := begun(t)
	expect(driver, "/healthz", http.StatusOK, `{"database":{"connections":3},"disk":"fine"}`)
	ready = false
	expect(&engine.Operator{}, "/healthz", http.StatusOK, `{}`) // Before the startup handlers are done there is nothing to look at.
	if code, text := look(driver, "/healthz"); code != http.StatusInternalServerError ||
		!strings.Contains(text, `"database":{"error":"no connection`) || !strings.Contains(text, `"disk":"fine"`) || strings.Contains(text, "hunter2") {
		t.Errorf("with a failing probe: %d %s", code, text)
	}
	check := op.healthy(driver)
	if err := check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)); err == nil || !strings.Contains(err.Error(), "probe database") {
		t.Errorf("the check of a foreign manager: %v", err)
	}
	driver.Kinds = []engine.Kind{op.kinds[0].kind}
	if code, _ := look(driver, "/readyz"); code != http.StatusInternalServerError {
		t.Errorf("readiness before anything is listed: %d", code)
	}
}

// Scenario 100: the exit code of a failed startup, through the command run, with its health port.
func TestAFailedStartupEndsTheProgram(t *testing.T) {
	ready := true
	op := probed(&ready)
	op.OnStartup("licence", func(context.Context, client.Client) error { return errors.New("the licence has expired") })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const invalid = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],` +
		`"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(invalid), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, failures strings.Builder
	args := []string{"run", "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "127.0.0.1:0"}
	if code := op.command(t.Context(), args, &out, &failures); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(failures.String(), "the licence has expired") {
		t.Errorf("complained %s", &failures)
	}
}

// A health port that cannot be opened is an error of Run.
func TestAHealthPortThatIsTaken(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	ready := true
	err := probed(&ready).Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, RunOptions{SingleReplica: true, HealthAddress: taken.Listener.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "open the health port") {
		t.Errorf("got %v", err)
	}
}
