package cli_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
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

// Profiles can be read as soon as the process runs, also before the API server answers, and go to loopback alone.
func TestProfilesAreServedOnLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	op := withFlags(func(*flag.FlagSet) {})
	heap := ""
	op.OnStartup("read-profile", func(ctx context.Context, _ client.Client) error {
		if heap = read(ctx, "http://"+address+"/debug/pprof/heap?debug=1"); heap == "" {
			return einmal.RetryAfter(time.Millisecond, errors.New("no profile yet"))
		}
		return errors.New("enough")
	})
	var out, failures strings.Builder
	command(t, op, append(unreachable(t), "--pprof-bind-address", address), &out, &failures)
	if !strings.Contains(heap, "# TotalAlloc = ") {
		t.Errorf("profile %q, log %s", heap, &failures)
	}
}

// read returns what an address serves, "" for nothing.
func read(ctx context.Context, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(body)
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
