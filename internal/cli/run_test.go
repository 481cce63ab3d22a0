package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scenario 100: the exit code of a failed startup, through the command run, with its health port.
func TestAFailedStartupEndsTheProgram(t *testing.T) {
	op := withFlags(func(*flag.FlagSet) {})
	op.OnStartup("licence", func(context.Context, client.Client) error { return errors.New("the licence has expired") })
	var out, failures strings.Builder
	if code := command(t, op, unreachable(t), &out, &failures); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(failures.String(), "the licence has expired") {
		t.Errorf("complained %s", &failures)
	}
}

// unreachable returns the arguments of a command run whose API server does not answer.
func unreachable(t *testing.T) []string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const nowhere = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],` +
		`"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"run", "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "127.0.0.1:0"}
}
