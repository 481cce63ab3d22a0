package cli_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
)

func TestTheCommandLineOfAnOperator(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", nowhere)
	for name, test := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"no command":         {nil, 2, "", "print its CustomResourceDefinitions"},
		"an unknown command": {[]string{"rum"}, 2, "", `unknown command "rum"`},
		"help":               {[]string{"--help"}, 0, "handle objects until stopped", ""},
		"version":            {[]string{"version"}, 0, "commit ", ""},
		"crds":               {[]string{"crds"}, 0, "---\nkind: One\n---\nkind: Two\n", ""},
		"run --help":         {[]string{"run", "--help"}, 0, "-namespace", ""},
		"a public profile":   {[]string{"run", "--pprof-bind-address", ":6060"}, 2, "", "must be a port on loopback, such as 127.0.0.1:6060"},
		"no profile port":    {[]string{"run", "--pprof-bind-address", "6060"}, 2, "", "missing port"},
		"an unknown flag":    {[]string{"run", "--colour"}, 2, "", "colour"},
		"a bad log format":   {[]string{"run", "--log-format", "xml"}, 2, "", "must be text or json"},
		"an argument":        {[]string{"run", "now"}, 2, "", `unexpected argument "now"`},
		"no API server":      {[]string{"run"}, 1, "", "--kubeconfig"},
		"a missing file":     {[]string{"run", "--kubeconfig", nowhere}, 1, "", nowhere},
		"uninstall --help":   {[]string{"uninstall", "--help"}, 0, "Stop the operator first", ""},
		"uninstall what":     {[]string{"uninstall", "now"}, 2, "", `unexpected argument "now"`},
		"uninstall where":    {[]string{"uninstall", "--dry-run", "--kubeconfig", nowhere}, 1, "", nowhere},
		"json logs, and -v":  {[]string{"run", "--log-format=json", "-v", "--kubeconfig", nowhere}, 1, "", nowhere},
		"an empty value":     {[]string{"run", "--kubeconfig", ""}, 2, "", "must not be empty; leave the flag out"},
		"a bad level":        {[]string{"run", "--log-level", "loud"}, 2, "", "must be debug, info, warn or error"},
	} {
		t.Run(name, func(t *testing.T) {
			op := einmal.New("op.example.com", einmal.CRDs([]byte("---\nkind: One\n"), []byte("kind: Two")))
			einmal.For[corev1.ConfigMap](op).OnCreate("x", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
			var out, failures strings.Builder
			if code := command(t, op, test.args, &out, &failures); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("printed %q, want %q in it", &out, test.out)
			}
			if !strings.Contains(failures.String(), test.err) {
				t.Errorf("complained %q, want %q in it", &failures, test.err)
			}
		})
	}
}

func TestMistakesEndRunWithAMessage(t *testing.T) {
	var out, failures strings.Builder
	if code := command(t, einmal.New("op.example.com"), []string{"run"}, &out, &failures); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(failures.String(), "no kinds: declare at least one") {
		t.Errorf("complained %q", &failures)
	}
	if code := command(t, einmal.New("op.example.com"), []string{"crds"}, &out, &failures); code != 1 || !strings.Contains(failures.String(), "einmal.CRDs") {
		t.Errorf("crds without any: exit code %d, %q", code, &failures)
	}
}

// command runs a command of the operator's program, and returns the exit code.
func command(t *testing.T, op *einmal.Operator, args []string, out, failures io.Writer) int {
	t.Helper()
	return hook.Of().Command(t.Context(), op, out, failures, args...)
}
