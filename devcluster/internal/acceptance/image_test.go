package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// busybox is an image with a shell, a web server and testdata/program.
	busybox = "example.org/busybox:1"
	// postgres is an image with PostgreSQL 15 and a shell. The user postgres has the ID 999.
	postgres = "example.org/postgres:15"
	// static is an image with testdata/program alone.
	static = "example.org/static:1"
)

// buildBusybox builds the image busybox and loads it into the node.
func buildBusybox(t *testing.T, dir string) {
	t.Helper()
	links := t.TempDir()
	for _, name := range []string{"cat", "dd", "echo", "httpd", "id", "ps", "sh", "sleep", "stat", "tail", "tar", "touch", "wget"} {
		if err := os.Symlink("busybox", filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	buildImage(t, dir, busybox, "--debian", "bookworm", "busybox-static", "--add", links+":/bin", "--program", program(t), "--entrypoint", "sh")
}

// buildPostgres builds the image postgres and loads it into the node. The server runs without a compiler, and without what the scripts of Debian's
// packages use.
func buildPostgres(t *testing.T, dir string) {
	t.Helper()
	buildImage(t, dir, postgres, "--debian", "bookworm", "postgresql-15", "dash", "util-linux",
		"--exclude", "libllvm*,libz3*,*perl*,locales,libc-l10n,adduser,debconf,dpkg,passwd,ucf,postgresql-common*",
		"--user", "postgres:999", "--env", "PATH=/usr/lib/postgresql/15/bin:/usr/bin")
}

// buildImage runs devcluster image build.
func buildImage(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if r := run(t, dir, append([]string{"image", "build", name}, args...)...); r.code != 0 || r.stdout != "loaded "+name+"\n" {
		t.Fatalf("image build %s: %+v", name, r)
	}
}

// program compiles testdata/program, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", file, ".")
	cmd.Dir, cmd.Env = filepath.Join("testdata", "program"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return file
}

// An image of one static program runs as the image's user, with CA certificates and without a shell. An image is the same from the cache, and can be
// written to a file.
func (c inCluster) imagesAreBuilt(t *testing.T) {
	file := program(t)
	buildImage(t, c.dir, static, "--program", file, "--user", "app:65532", "--env", "GREETING=hello world")
	c.create(t, `{apiVersion: v1, kind: Pod, metadata: {name: static}, spec: {securityContext: {runAsNonRoot: true},
  containers: [{name: c, image: "`+static+`", args: [self]}]}}`)
	eventually(t, func() error { return c.logged(t, "static", "hello world as app, 65532 with certificates\n") })
	const again = "example.org/again:1"
	written := make([]string, 2)
	for i := range written {
		written[i] = filepath.Join(t.TempDir(), "image.tar")
		args := []string{"image", "build", again, "busybox-static", "--debian", "bookworm", "--program", file, "--output", written[i]}
		if r := run(t, c.dir, args...); r.code != 0 || r.stdout != "wrote "+written[i]+"\n" || !strings.Contains(r.stderr, "using the cached packages of bookworm") {
			t.Fatalf("image build --output: %+v", r)
		}
	}
	first, err := os.ReadFile(written[0])
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(written[1]); err != nil || string(first) != string(second) {
		t.Errorf("two builds of the same files differ: %v", err)
	}
	if r := run(t, c.dir, "image", "load", written[0]); r.code != 0 || r.stdout != "loaded "+again+"\n" {
		t.Errorf("image load: %+v", r)
	}
}
