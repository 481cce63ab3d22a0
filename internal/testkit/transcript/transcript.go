// Package transcript records command lines with their output and exit code, and compares them with a file that a person can read.
package transcript

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

// updateFlag is the flag of go test that rewrites the file.
const updateFlag = "update"

// Transcript collects command lines.
type Transcript struct {
	hide func(text string) string
	text strings.Builder
}

// New begins a transcript of the command lines that the title names. The function hide replaces what differs in each run.
func New(t *testing.T, title string, hide func(text string) string) *Transcript {
	t.Helper()
	r := &Transcript{hide: hide}
	r.text.WriteString(title + ", with the lines of standard output (1>) and standard\n" +
		"error (2>) and the exit code. Written by: go test -run " + t.Name() + " . -update\n")
	return r
}

// Run runs a command and returns its exit code. The transcript shows its words as a user types them. The note says what is special.
func (r *Transcript) Run(t *testing.T, note string, words []string, command *exec.Cmd) int {
	t.Helper()
	var out, failures strings.Builder
	command.Stdout, command.Stderr = &out, &failures
	if err := command.Run(); command.ProcessState == nil {
		t.Fatal(err)
	}
	r.text.WriteString("\n")
	if note != "" {
		r.text.WriteString("# " + note + "\n")
	}
	r.text.WriteString("$")
	for _, word := range words {
		if word == "" || strings.Contains(word, " ") {
			word = "'" + word + "'"
		}
		r.text.WriteString(" " + word)
	}
	r.text.WriteString("\n")
	r.lines("1> ", out.String())
	r.lines("2> ", failures.String())
	code := command.ProcessState.ExitCode()
	_, _ = fmt.Fprintf(&r.text, "exit code %d\n", code)
	return code
}

func (r *Transcript) lines(mark, text string) {
	for line := range strings.Lines(r.hide(text)) {
		r.text.WriteString(strings.TrimRight(mark+line, " \n") + "\n")
	}
}

// Compare compares the transcript with a file. With the flag -update, it writes the file instead.
func (r *Transcript) Compare(t *testing.T, file string) {
	t.Helper()
	if flag.Lookup(updateFlag).Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(r.text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.text.String()); diff != "" {
		t.Errorf("the output differs from %s; run with -update if the change is intended (-want +got):\n%s", file, diff)
	}
}
