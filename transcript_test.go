package einmal_test

import (
	"bytes"
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

// transcript records command lines of a program with their output and exit code, and compares them with a file that a
// person can read. The flag -update rewrites the file.
type transcript struct {
	program, golden string
	// server is the address of the API server, which differs in each run.
	server string
	text   strings.Builder
}

func newTranscript(t *testing.T, program, golden, server string) *transcript {
	t.Helper()
	r := &transcript{program: program, golden: golden, server: server}
	r.text.WriteString("Wrong and dangerous command lines of an operator's program, with the lines of standard output (1>) and standard\n" +
		"error (2>) and the exit code. Written by: go test -run " + t.Name() + " . -update\n")
	return r
}

// run runs a command line with a kubeconfig, in an empty home, and returns the exit code. The note says what is special.
func (r *transcript) run(t *testing.T, note, kubeconfig string, args ...string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), r.program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	var out, failures bytes.Buffer
	command.Stdout, command.Stderr = &out, &failures
	code := exitCode(t, command.Run())
	line := filepath.Base(r.program)
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		line += " " + arg
	}
	r.text.WriteString("\n")
	if note != "" {
		r.text.WriteString("# " + note + "\n")
	}
	r.text.WriteString("$ " + line + "\n")
	r.lines("1> ", out.String())
	r.lines("2> ", failures.String())
	_, _ = fmt.Fprintf(&r.text, "exit code %d\n", code)
	return code
}

func (r *transcript) lines(mark, text string) {
	text = strings.ReplaceAll(text, r.server, "https://SERVER")
	text = regexp.MustCompile(`held by \S+_[-0-9a-f]{36}`).ReplaceAllString(text, "held by HOLDER")
	for line := range strings.Lines(text) {
		r.text.WriteString(strings.TrimRight(mark+line, " \n") + "\n")
	}
}

// compare compares all that was recorded with the golden file.
func (r *transcript) compare(t *testing.T) {
	t.Helper()
	if flag.Lookup(updateFlag).Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(r.golden), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.golden, []byte(r.text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(r.golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.text.String()); diff != "" {
		t.Errorf("the command lines answer otherwise than %s says (-want +got):\n%s", r.golden, diff)
	}
}
