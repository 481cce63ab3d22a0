package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write writes a file of the current directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runAgain builds the tests of the package one as a new run of the program does, runs them, and returns the file of the binary.
func runAgain(t *testing.T, binaries string) (outcome, os.FileInfo) {
	t.Helper()
	one := binary{folder: "one"}
	builds := &builder{directory: binaries, numbers: map[string]int{}, built: map[binary]error{}}
	if failed := builds.build(t.Context(), []binary{one}); len(failed) > 0 {
		t.Fatal(failed)
	}
	linked, err := os.Stat(builds.program(one))
	if err != nil {
		t.Fatal(err)
	}
	converter, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "test2json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return test(t.Context(), testProgram{one.folder, builds.program(one), strings.TrimSpace(string(converter)), nil, nil, time.Minute}), linked
}

func TestABinaryIsLinkedAgainIfWhatItTestsHasChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "go.mod", "module example.com/planted\n\ngo 1.26\n")
	write(t, "two/two.go", "package two\n\nfunc Sum(a, b int) int { return a + b }\n")
	write(t, "one/one_test.go", `package one

import (
	"testing"

	"example.com/planted/two"
)

func TestSum(t *testing.T) {
	if two.Sum(1, 2) != 3 {
		t.Error("wrong sum")
	}
}
`)
	binaries := t.TempDir()
	first, linkedFirst := runAgain(t, binaries)
	if first.err != nil || first.passed != 1 || first.used.cpu <= 0 {
		t.Fatalf("the first run: %+v, want one test that passes and uses CPU time", first)
	}
	if again, linked := runAgain(t, binaries); again.err != nil || !os.SameFile(linked, linkedFirst) {
		t.Errorf("the second run: error %v, same file %v, want the binary of the first run", again.err, os.SameFile(linked, linkedFirst))
	}
	write(t, "two/two.go", "package two\n\nfunc Sum(a, b int) int { return a - b }\n")
	if planted, linked := runAgain(t, binaries); planted.err == nil || os.SameFile(linked, linkedFirst) || planted.failed != 1 || !strings.Contains(planted.printed, "wrong sum") {
		t.Errorf("a run with a planted bug: %+v, want the failure of its test", planted)
	}
}

func TestBinariesOfTheSameNameHaveDifferentPlaces(t *testing.T) {
	t.Chdir("../..")
	folders := []string{".", "api/v1", "cmd/einmal", "devcluster/api/v1", "other/api/v1"}
	builds, err := newBuilder(t.Context(), "bin", folders)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]binary{}
	for _, folder := range folders {
		for _, race := range []bool{false, true} {
			one := binary{folder, race}
			if other, taken := seen[builds.program(one)]; taken {
				t.Errorf("%v and %v are both %s", other, one, builds.program(one))
			}
			seen[builds.program(one)] = one
		}
	}
}
