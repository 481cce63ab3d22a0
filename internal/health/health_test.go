package health_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/health"
)

// Scenario 101 in part: what probes tell is shown as JSON, and one that fails makes the answer a 500.
func TestProbesAreShownOnTheHealthPort(t *testing.T) {
	begun, connected, listed := false, true, true
	op := health.Operator{
		Identity: "op.example.com",
		Probes: []health.Probe{
			{ID: "database", Look: func(context.Context) (any, error) {
				if !connected {
					return nil, errors.New("no connection with password=hunter2hunter2")
				}
				return map[string]int{"connections": 3}, nil
			}},
			{ID: "disk", Look: func(context.Context) (any, error) { return "fine", nil }},
		},
		Begun: func() bool { return begun },
		Ready: func() error {
			if listed {
				return nil
			}
			return errors.New("nothing is listed yet")
		},
	}
	served, err := op.Server(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = served.Listener.Close() })
	look := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		served.Server.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	expect := func(path string, code int, text string) {
		t.Helper()
		if gotCode, got := look(path); gotCode != code || got != text {
			t.Errorf("%s: %d %s, want %d %s", path, gotCode, got, code, text)
		}
	}
	connected = false
	expect("/healthz", http.StatusOK, `{}`) // Before the startup handlers are done there is nothing to look at.
	begun, connected = true, true
	expect("/healthz", http.StatusOK, `{"database":{"connections":3},"disk":"fine"}`)
	connected = false
	if code, text := look("/healthz"); code != http.StatusInternalServerError ||
		!strings.Contains(text, `"database":{"error":"no connection`) || !strings.Contains(text, `"disk":"fine"`) || strings.Contains(text, "hunter2") {
		t.Errorf("with a failing probe: %d %s", code, text)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	if err := op.CheckProbes(request); err == nil || !strings.Contains(err.Error(), "probe database") {
		t.Errorf("the check of a foreign manager: %v", err)
	}
	expect("/readyz", http.StatusOK, "ok")
	listed = false
	if code, _ := look("/readyz"); code != http.StatusInternalServerError {
		t.Errorf("readiness before anything is listed: %d", code)
	}
}

// A health port that cannot be opened is an error.
func TestAHealthPortThatIsTaken(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	if _, err := (health.Operator{}).Server(t.Context(), taken.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "open the health port") {
		t.Errorf("got %v", err)
	}
}
