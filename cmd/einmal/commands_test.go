package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/transcript"
)

// TestWrongCommandLines compares the output of wrong and dangerous command lines with testdata/commands.txt. The flag -update
// rewrites the file.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	p.remoteKubeconfig()
	if err := os.CopyFS(filepath.Join(p.root, "my operator"), os.DirFS("testdata/operator")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	const operator = "cmd/einmal/testdata/operator"
	golden := transcript.New(t, "Wrong and dangerous command lines of einmal", strings.NewReplacer(p.root, "/folder", os.Args[0], "einmal").Replace)
	for _, line := range [][]string{
		{},
		{"dev"},
		{"dev", "--no-such-flag", operator},
		{"dev", operator, "other"},
		{"dev", ""},
		{"dev", "--kubeconfig", "remote.kubeconfig", operator},
		{"dev", "--context", "remote", operator},
		{"dev", "--data", "", operator},
		{"dev", "--node", "container", operator},
		{"dev", "none"},
		{"dev", "empty"},
		{"dev", "my operator"},
		{"dev", "--apply", "none.yaml", operator},
		{"develop"},
		{"help", "develop"},
		{"help", "dev", "nope"},
		{"version", "extra"},
		{"kubectl", "delete", "namespaces", "--all"},
		{"KUBECONFIG=remote.kubeconfig", "kubectl", "delete", "namespaces", "--all"},
		{"kubectl", "--kubeconfig", "remote.kubeconfig", "delete", "namespaces", "--all"},
		{"kubectl", "--kubeconfig", "", "delete", "namespaces", "--all"},
		{"kubectl", "delete", "namespaces", "--all", "--server", "https://203.0.113.1:6443"},
		{"kubectl", "--data=", "delete", "namespaces", "--all"},
		{"kubectl", "--data", "none", "delete", "namespaces", "--all"},
	} {
		p.record(golden, line)
	}
	golden.Compare(t, "testdata/commands.txt")
}

// record runs a command line, which may begin with an environment variable.
func (p playground) record(golden *transcript.Transcript, line []string) {
	p.t.Helper()
	words, variables := line, []string(nil)
	if len(line) > 0 && strings.HasPrefix(line[0], "KUBECONFIG=") {
		words, variables = line[1:], line[:1]
	}
	cmd := einmal(p.t, p.root, words...)
	cmd.Env = append(cmd.Env, variables...)
	golden.Run(p.t, "", slices.Concat(variables, []string{"einmal"}, words), cmd)
}
