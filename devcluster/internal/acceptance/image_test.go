package acceptance

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// busybox is an image with a shell, a web server and testdata/caller.
const busybox = "example.org/busybox:1"

// busyboxArchive makes the image of Debian's package of busybox and of a program of the tests. It returns the path of its docker archive.
func busyboxArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command(t, dir, "apt-get", "download", "-qq", "busybox-static")
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("found the packages %q: %v", packages, err)
	}
	command(t, dir, "dpkg-deb", "-x", packages[0], "root")
	caller := filepath.Join(dir, "root", "bin", "caller")
	command(t, filepath.Join("testdata", "caller"), "env", "CGO_ENABLED=0", "go", "build", "-o", caller, ".")
	files := []tar.Header{{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir}}
	programs := map[string][]byte{}
	for _, name := range []string{"bin/busybox", "bin/caller"} {
		if programs[name], err = os.ReadFile(filepath.Join(dir, "root", name)); err != nil {
			t.Fatal(err)
		}
		files = append(files, tar.Header{Name: name, Mode: 0o755, Size: int64(len(programs[name]))})
	}
	for _, name := range []string{"cat", "echo", "httpd", "id", "ps", "sh", "sleep", "tail", "tar", "wget"} {
		files = append(files, tar.Header{Name: "bin/" + name, Linkname: "busybox", Typeflag: tar.TypeSymlink})
	}
	layer := tarOf(t, files, programs)
	config := marshal(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"sh"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	manifest := marshal(t, []any{map[string]any{"Config": "config.json", "RepoTags": []string{busybox}, "Layers": []string{"layer.tar"}}})
	contents := map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest}
	var headers []tar.Header
	for name, content := range contents {
		headers = append(headers, tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
	}
	path := filepath.Join(dir, "busybox.tar")
	if err := os.WriteFile(path, tarOf(t, headers, contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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

func tarOf(t *testing.T, headers []tar.Header, contents map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, header := range headers {
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(contents[header.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
