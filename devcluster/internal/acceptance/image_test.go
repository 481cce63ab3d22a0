package acceptance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// busybox is an image with a shell, a web server and testdata/program.
const busybox = "example.org/busybox:1"

// busyboxArchive makes the image busybox. It returns the path of its docker archive.
func busyboxArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	busyboxRoot(t, dir)
	return archive(t, dir, busybox, "/bin")
}

// busyboxRoot makes the files of the image busybox in dir/root, from Debian's package and the program of the tests.
func busyboxRoot(t *testing.T, dir string) {
	t.Helper()
	addPackages(t, dir, "busybox-static")
	bin := filepath.Join(dir, "root", "bin")
	command(t, filepath.Join("testdata", "program"), "env", "CGO_ENABLED=0", "go", "build", "-o", filepath.Join(bin, "program"), ".")
	for _, name := range []string{"cat", "echo", "httpd", "id", "ps", "sh", "sleep", "tail", "tar", "wget"} {
		if err := os.Symlink("busybox", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	command(t, dir, "install", "-d", "-m", "1777", "root/tmp")
}

// postgresArchive makes an image with PostgreSQL and the user postgres, with the ID 999, in the same way.
func postgresArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	busyboxRoot(t, dir)
	printed, err := exec.CommandContext(t.Context(), "apt-get", "--print-uris", "-y", "-qq", "--no-install-recommends",
		"-o", "Dir::State::status=/dev/null", "install", "postgresql").Output()
	if err != nil {
		t.Fatalf("list the packages of PostgreSQL: %v", err)
	}
	// A server needs no compiler, and no programs that Debian's scripts use.
	unneeded := regexp.MustCompile(`^(libllvm.*|libz3.*|.*perl.*|locales.*|libc-l10n|adduser|debconf|dpkg|passwd|tar|ucf|postgresql-common.*)=`)
	var needed []string
	for line := range strings.Lines(string(printed)) {
		const file, columns = 1, 3 // A hash can follow.
		fields := strings.Fields(line)
		if len(fields) < columns {
			t.Fatalf("parse %q", line)
		}
		name, err := url.PathUnescape(fields[file])
		parts := strings.Split(name, "_")
		if err != nil || len(parts) != 3 {
			t.Fatalf("parse %q: %v", fields[file], err)
		}
		if version := parts[0] + "=" + parts[1]; !unneeded.MatchString(version) {
			needed = append(needed, version)
		}
	}
	addPackages(t, dir, needed...)
	if err := os.WriteFile(filepath.Join(dir, "root", "etc", "passwd"), []byte("postgres:x:999:999::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "root", "usr", "lib", "postgresql", "*", "bin"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("found the programs %q: %v", programs, err)
	}
	return archive(t, dir, postgres, "/bin:"+strings.TrimPrefix(programs[0], filepath.Join(dir, "root")))
}

// addPackages unpacks packages of Debian into dir/root. It runs none of their scripts.
func addPackages(t *testing.T, dir string, packages ...string) {
	t.Helper()
	downloaded := filepath.Join(dir, packages[0])
	if err := os.MkdirAll(downloaded, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, downloaded, "apt-get", append([]string{"download", "-qq"}, packages...)...)
	files, err := filepath.Glob(filepath.Join(downloaded, "*.deb"))
	if err != nil || len(files) != len(packages) {
		t.Fatalf("downloaded %q for %q: %v", files, packages, err)
	}
	for _, file := range files {
		command(t, dir, "dpkg-deb", "-x", file, "root")
	}
}

// archive makes a docker archive of the image with the files in dir/root. It returns its path.
func archive(t *testing.T, dir, name, searched string) string {
	t.Helper()
	command(t, dir, "tar", "--owner=0", "--group=0", "--numeric-owner", "-C", "root", "-cf", "layer.tar", ".")
	layer, err := os.ReadFile(filepath.Join(dir, "layer.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for file, value := range map[string]any{
		"config.json": map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": []string{"PATH=" + searched}, "Cmd": []string{"sh"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		},
		"manifest.json": []any{map[string]any{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}},
	} {
		text, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command(t, dir, "tar", "-cf", "image.tar", "manifest.json", "config.json", "layer.tar")
	return filepath.Join(dir, "image.tar")
}

// command runs a program in a directory.
func command(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
}
