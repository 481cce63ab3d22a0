package rundir_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/rundir"
)

// holderVariable makes the test binary run hold.
const holderVariable = "EINMAL_TEST_HOLDS_A_RUN_DIRECTORY"

// TestMain lets the test binary act as another process that holds a run directory.
func TestMain(m *testing.M) {
	if root := os.Getenv(holderVariable); root != "" {
		os.Exit(hold(root))
	}
	os.Exit(m.Run())
}

// hold opens a run directory and waits until it is killed, or until its parent ends. A process in which all goroutines wait would be ended by the
// Go runtime.
func hold(root string) int {
	dir, err := rundir.Open(root, "/src/hello")
	if err == nil {
		err = os.WriteFile(dir.Token, []byte("secret"), 0o600)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(dir) // The lock would end with it.
	return 0
}

func open(t *testing.T, root, operator string) *rundir.Dir {
	t.Helper()
	dir, err := rundir.Open(root, operator)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRunsShareNoFilesAndLeaveNone(t *testing.T) {
	root := t.TempDir()
	dirs := []*rundir.Dir{open(t, root, "/src/hello"), open(t, root, "/other/hello")}
	for _, dir := range dirs {
		for _, path := range []string{dir.Binary, dir.Next, dir.Kubeconfig, dir.Token} {
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // fails if another run uses the path
			if err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
		}
		if info, err := os.Stat(filepath.Dir(dir.Token)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("error %v, mode %v, want 0700", err, info.Mode())
		}
	}
	for _, dir := range dirs {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}
	if left := files(t, root); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestSecondRunIsRefusedUntilTheFirstEnds(t *testing.T) {
	root := filepath.Join(t.TempDir(), "with [blank] *")
	first := open(t, root, "/src/hello")
	_, err := rundir.Open(root, "/src/hello")
	want := fmt.Sprintf("einmal dev runs already for /src/hello in this devcluster (process %d)\n", os.Getpid())
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := open(t, root, "/src/hello").Close(); err != nil {
		t.Error(err)
	}
}

func TestTheFilesOfAKilledRunAreRemovedByTheNextRun(t *testing.T) {
	root := t.TempDir()
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holderVariable+"="+root)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	output := make([]byte, 1024)
	if n, _ := out.Read(output); string(output[:n]) != "open\n" {
		t.Fatalf("the other process printed %q, want \"open\"", output[:n])
	}
	// A run of another operator must not remove the files of a live run.
	if err := open(t, root, "/src/other").Close(); err != nil {
		t.Error(err)
	}
	if left := files(t, root); len(left) == 0 {
		t.Error("the files of a live run were removed")
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if err := open(t, root, "/src/other").Close(); err != nil {
		t.Error(err)
	}
	if left := files(t, root); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestSwapKeepsTheBuiltProgramForTheNextBuild(t *testing.T) {
	dir := open(t, t.TempDir(), "/src/hello")
	defer func() { _ = dir.Close() }()
	for _, text := range []string{"one", "two", "two"} {
		_ = os.Remove(dir.Next) // "go build" writes a new file
		if err := os.WriteFile(dir.Next, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := dir.Swap(); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{dir.Binary, dir.Next} {
			got, err := os.ReadFile(path)
			if diff := cmp.Diff(text, string(got)); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", path, err, diff)
			}
		}
	}
}

// files returns the regular files below a directory, except for the lock of the directory itself.
func files(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && path != filepath.Join(root, "lock") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
