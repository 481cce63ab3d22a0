package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenFile contains the command lines of wrongCommandLines with their output and exit code.
const goldenFile = "testdata/commands.golden"

// wrongCommandLines compares the output of wrong and dangerous command lines with the golden file. The flag -update
// rewrites the file.
func wrongCommandLines(t *testing.T, c *clusters) {
	p := newPlayground(t)
	p.write("remote.kubeconfig", `apiVersion: v1
kind: Config
current-context: remote
clusters: [{name: remote, cluster: {server: "https://203.0.113.1:6443"}}]
contexts: [{name: remote, context: {cluster: remote}}]
`)
	if err := os.CopyFS(filepath.Join(p.root, "my operator"), os.DirFS("testdata/operator")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	operator, production := "cmd/einmal/testdata/operator", c.production.kubeconfig
	var golden strings.Builder
	golden.WriteString("# Wrong and dangerous command lines, with the lines of standard output (1>) and standard error (2>) and the exit code.\n" +
		"# Written by: go test ./cmd/einmal -run TestDevStays -update\n")
	for _, line := range [][]string{
		{},
		{"dev"},
		{"dev", "--no-such-flag", operator},
		{"dev", operator, "other"},
		{"dev", "--fresh", "--context", "staging", operator},
		{"dev", ""},
		{"dev", "--kubeconfig", "", operator},
		{"dev", "--context=", operator},
		{"dev", "--data", "", operator},
		{"dev", "--kubeconfig", production, "--yes-apply-to", "", operator},
		{"dev", "none"},
		{"dev", "empty"},
		{"dev", "my operator"},
		{"dev", "--apply", "none.yaml", operator},
		{"dev", "--kubeconfig", "none", operator},
		{"dev", "--kubeconfig", production, "--context", "staging", operator},
		{"dev", "--kubeconfig", production, operator},
		{"dev", "--kubeconfig", production, "--yes-apply-to", "staging", operator},
		{"develop"},
		{"help", "develop"},
		{"help", "dev", "nope"},
		{"version", "extra"},
		{"kubectl", "delete", "namespaces", "--all"},
		{"KUBECONFIG=" + production, "kubectl", "--kubeconfig", "", "delete", "namespaces", "--all"},
		{"KUBECONFIG=" + production, "kubectl", "--kubeconfig=", "delete", "namespaces", "--all"},
		{"KUBECONFIG=remote.kubeconfig", "kubectl", "delete", "namespaces", "--all"},
	} {
		golden.WriteString(c.transcript(p, line))
	}
	compareGolden(t, golden.String())
}

// transcript runs a command line, which may begin with an environment variable, and returns it with its output and exit
// code.
func (c *clusters) transcript(p playground, line []string) string {
	p.t.Helper()
	words, variables := line, []string(nil)
	if len(line) > 0 && strings.HasPrefix(line[0], "KUBECONFIG=") {
		words, variables = line[1:], line[:1]
	}
	cmd := c.einmal(p, words...)
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
	text = strings.NewReplacer(
		p.root, "/folder", filepath.Dir(c.production.kubeconfig), "/kube",
		c.production.server, "https://127.0.0.1:6443", os.Args[0], "einmal",
	).Replace(text)
	// A busy machine is slower than the command's patience.
	text = regexp.MustCompile(`(?m)^.*\| waiting for .*: running for .*\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`Kubernetes v\S+`).ReplaceAllString(text, "Kubernetes v1.x")
	return regexp.MustCompile(`built in \S+`).ReplaceAllString(text, "built in 1s")
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
