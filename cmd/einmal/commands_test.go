package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenFile contains the command lines of TestWrongCommandLines with their output and exit code.
const goldenFile = "testdata/commands.golden"

// TestWrongCommandLines compares the output of wrong and dangerous command lines with the golden file. The flag -update
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
	var golden strings.Builder
	golden.WriteString("# Wrong and dangerous command lines, with the lines of standard output (1>) and standard error (2>) and the exit code.\n" +
		"# Written by: go test ./cmd/einmal -run TestWrongCommandLines -update\n")
	for _, line := range [][]string{
		{},
		{"dev"},
		{"dev", "--no-such-flag", operator},
		{"dev", operator, "other"},
		{"dev", ""},
		{"dev", "--kubeconfig", "remote.kubeconfig", operator},
		{"dev", "--context", "remote", operator},
		{"dev", "--data", "", operator},
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
		golden.WriteString(p.transcript(line))
	}
	compareGolden(t, golden.String())
}

// transcript runs a command line, which may begin with an environment variable, and returns it with its output and exit
// code.
func (p playground) transcript(line []string) string {
	p.t.Helper()
	words, variables := line, []string(nil)
	if len(line) > 0 && strings.HasPrefix(line[0], "KUBECONFIG=") {
		words, variables = line[1:], line[:1]
	}
	cmd := einmal(p.t, p.root, words...)
	cmd.Env = append(cmd.Env, variables...)
	output, code := runMarked(p.t, cmd)
	shown := append(append([]string{}, variables...), "einmal")
	for _, word := range words {
		if word == "" || strings.Contains(word, " ") {
			word = "'" + word + "'"
		}
		shown = append(shown, word)
	}
	text := fmt.Sprintf("\n$ %s\n%s[exit code %d]\n", strings.Join(shown, " "), output, code)
	return strings.NewReplacer(p.root, "/folder", os.Args[0], "einmal").Replace(text)
}

// runMarked runs a command until it exits. It returns the lines of standard output and then those of standard error, each
// with its stream, and the exit code.
func runMarked(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	var stdout, stderr, marked strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	for _, stream := range []struct{ mark, text string }{{"1> ", stdout.String()}, {"2> ", stderr.String()}} {
		for line := range strings.Lines(stream.text) {
			marked.WriteString(stream.mark + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return marked.String(), exitCode(err)
}

func compareGolden(t *testing.T, got string) {
	t.Helper()
	if flag.Lookup(updateFlag).Value.String() == "true" {
		if err := os.WriteFile(goldenFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run with -update if the change is intended (-want +got):\n%s", goldenFile, diff)
	}
}
