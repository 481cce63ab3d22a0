package console_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
)

func TestLinesHaveAlignedPrefixes(t *testing.T) {
	var out strings.Builder
	screen := console.New(&out, &out, false, "operator", "dev")
	operator := screen.Stream("operator", console.Green)
	dev := screen.Stream("dev", console.Blue)
	fmt.Fprint(operator, "first\nsec")
	dev.Printf("two\nlines\n")
	fmt.Fprint(operator, "ond\r\n\nrest")
	screen.Result("export KUBECONFIG=/k")
	if err := operator.Close(); err != nil {
		t.Fatal(err)
	}
	want := "operator | first\n     dev | two\n     dev | lines\noperator | second\noperator |\n" +
		"export KUBECONFIG=/k\noperator | rest\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestLongLineIsBroken(t *testing.T) {
	var out strings.Builder
	stream := console.New(&out, &out, false, "x").Stream("x", console.Green)
	fmt.Fprint(stream, strings.Repeat("a", 100<<10))
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("%d lines written, want 1", got)
	}
}

func TestLinesOfConcurrentWritersAreNotMixed(t *testing.T) {
	var out strings.Builder
	screen := console.New(&out, &out, false, "a", "b")
	var writers sync.WaitGroup
	for _, name := range []string{"a", "b", "a", "b"} {
		stream := screen.Stream(name, console.Green)
		writers.Go(func() {
			for range 200 {
				for _, part := range []string{"<" + name, name, name + ">", "\n"} {
					_, _ = io.WriteString(stream, part)
				}
			}
		})
	}
	writers.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 800 {
		t.Errorf("%d lines, want 800", len(lines))
	}
	for _, line := range lines {
		if line != "a | <aaa>" && line != "b | <bbb>" {
			t.Fatalf("mixed line %q", line)
		}
	}
}

func TestColoured(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(key string) string { return values[key] }
	}
	for name, c := range map[string]struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		"terminal":      {true, nil, true},
		"file":          {false, nil, false},
		"NO_COLOR":      {true, map[string]string{"NO_COLOR": "1"}, false},
		"dumb terminal": {true, map[string]string{"TERM": "dumb"}, false},
	} {
		if got := console.Coloured(c.terminal, env(c.env)); got != c.want {
			t.Errorf("%s: coloured %v, want %v", name, got, c.want)
		}
	}
	var out strings.Builder
	console.New(&out, &out, true, "dev").Stream("dev", console.Blue).Printf("hello")
	if want := "\x1b[34mdev |\x1b[0m hello\n"; out.String() != want {
		t.Errorf("coloured line %q, want %q", out.String(), want)
	}
}
