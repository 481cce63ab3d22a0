package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written returns a line for each entry of a layer: type, mode, owner, name and target.
func written(t *testing.T, fill func(*layer) error) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layer")
	if err := writeLayer(file, fill); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // It was only read.
	plain, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%c %04o %d %s %s", h.Typeflag, h.Mode, h.Uid, h.Name, h.Linkname)))
	}
}

// files creates files, with directories, and returns their directory.
func files(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAddedFilesBelongToRootAndKeepTheirMode(t *testing.T) {
	t.Parallel()
	dir := files(t, "site/index.html", "site/css/main.css")
	if err := os.Symlink("index.html", filepath.Join(dir, "site", "start")); err != nil {
		t.Fatal(err)
	}
	s := Spec{Added: []Added{{Host: filepath.Join(dir, "site"), Path: "/srv"}, {Host: filepath.Join(dir, "site", "index.html"), Path: "/sbin/file"}}}
	want := []string{"5 0755 0 srv/css/", "0 0640 0 srv/css/main.css", "0 0640 0 srv/index.html", "2 0777 0 srv/start index.html", "0 0640 0 usr/sbin/file"}
	if diff := cmp.Diff(want, written(t, s.addFiles)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestTheBaseHasTheUserAndDebiansLinks(t *testing.T) {
	t.Parallel()
	s := Spec{User: User{ID: 999, Name: "postgres"}}
	got := strings.Join(written(t, func(l *layer) error { return s.addBase(l, io.Discard) }), "\n")
	for _, want := range []string{"2 0777 0 bin usr/bin", "5 0755 0 usr/bin/", "5 1777 0 tmp/", "0 0644 0 etc/passwd", "0 0644 0 etc/group"} {
		if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
			t.Errorf("the base has no %q:\n%s", want, got)
		}
	}
}

func TestWhatAnImageCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	dir := files(t, "script", "empty", "site/file")
	if err := os.Truncate(filepath.Join(dir, "empty"), 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, "site", "pipe")).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	foreign, dynamic := filepath.Join(dir, "foreign"), filepath.Join(dir, "dynamic")
	writeProgram(t, foreign, elf.EM_RISCV)
	writeProgram(t, dynamic, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH])
	for want, s := range map[string]Spec{
		"must be an executable file for Linux":            {Programs: []string{filepath.Join(dir, "script")}},
		"add scripts with --add":                          {Programs: []string{filepath.Join(dir, "empty")}},
		"is for EM_RISCV, but the node is for":            {Programs: []string{foreign}},
		"is dynamically linked":                           {Programs: []string{dynamic}},
		"no such file":                                    {Added: []Added{{Host: filepath.Join(dir, "none"), Path: "/none"}}},
		"must be a file, a directory or a symbolic link,": {Added: []Added{{Host: filepath.Join(dir, "site"), Path: "/site"}}},
	} {
		file := filepath.Join(t.TempDir(), "layer")
		if err := writeLayer(file, s.addFiles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
		if left, err := filepath.Glob(file + "*"); err != nil || len(left) != 0 {
			t.Errorf("%q was left: %v", left, err)
		}
	}
}

// writeProgram writes the headers of a dynamically linked program.
func writeProgram(t *testing.T, file string, machine elf.Machine) {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phnum: 1}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	h.Ehsize, h.Phentsize = uint16(binary.Size(h)), uint16(binary.Size(elf.Prog64{}))
	h.Phoff = uint64(h.Ehsize)
	var text bytes.Buffer
	if err := binary.Write(&text, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(&text, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_INTERP)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPackagesKeepLicensesAndOwnersWithoutDocumentation(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb makes the package of this test")
	}
	dir := files(t, "bin/tool", "usr/share/doc/tool/copyright", "usr/share/doc/tool/manual", "usr/share/man/man1/tool.1", "usr/share/tool/data")
	if err := os.Symlink("usr/lib", filepath.Join(dir, "lib")); err != nil {
		t.Fatal(err)
	}
	control := filepath.Join(dir, "DEBIAN", "control")
	if err := os.Mkdir(filepath.Dir(control), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: none <none@example.org>\nDescription: a tool\n"
	if err := os.WriteFile(control, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(t.TempDir(), "tool.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", dir, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	got := written(t, func(l *layer) error { return unpack(t.Context(), l, deb) })
	want := []string{
		"5 0755 0 usr/bin/", "0 0640 0 usr/bin/tool", "5 0755 0 usr/", "5 0755 0 usr/share/", "5 0755 0 usr/share/doc/",
		"0 0640 0 usr/share/doc/tool/copyright", "5 0755 0 usr/share/man/", "5 0755 0 usr/share/tool/", "0 0640 0 usr/share/tool/data",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	broken := files(t, "broken.deb")
	err := writeLayer(filepath.Join(t.TempDir(), "layer"), func(l *layer) error { return unpack(t.Context(), l, filepath.Join(broken, "broken.deb")) })
	if err == nil || !strings.Contains(err.Error(), "dpkg-deb: error:") {
		t.Errorf("a file that is not a package gives %v", err)
	}
}

func TestMirrorsOfTheMachineServeOtherSuites(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ archive, suite, want string }{
		{"bookworm", "trixie", "trixie"},
		{"bookworm-security", "trixie", "trixie-security"},
		{"bookworm", "sid", "sid"},
		{"bookworm-updates", "bookworm", "bookworm-updates"},
		{"bookworm-security", "sid", ""},
		{"bookworm-backports", "trixie", ""},
		{"nodistro", "trixie", ""},
	} {
		got, found := sameArchive(test.archive, "bookworm", test.suite)
		if found != (test.want != "") || found && got != test.want {
			t.Errorf("%s gives %q, %t for %s, want %q", test.archive, got, found, test.suite, test.want)
		}
	}
}

func TestPackagesAreExcludedByPattern(t *testing.T) {
	t.Parallel()
	p := Packages{Exclude: []string{"libllvm*", "perl"}}
	for version, want := range map[string]bool{"libllvm14=1:14.0.6-12": true, "perl=5.36": true, "perl-base=5.36": false} {
		if got := p.excludes(version); got != want {
			t.Errorf("%s is excluded: %t, want %t", version, got, want)
		}
	}
}

func TestVersionsOfPackagesAreParsed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"'http://deb.example.org/l.deb' libaudit1_1%3a3.0.9-1_amd64.deb 44064 MD5Sum:c7d1": "libaudit1=1:3.0.9-1",
		"'file:/srv/tool_1_all.deb' tool_1_all.deb 20":                                     "tool=1",
		"Reading package lists...":                                                         "",
	} {
		got, err := versionOf(line)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s gives %q and the error %v, want %q", line, got, err, want)
		}
	}
}

func TestTheCacheKnowsARequestInAnyOrder(t *testing.T) {
	t.Parallel()
	key := func(p Packages) string {
		k, err := p.key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	one := key(Packages{Suite: "bookworm", Names: []string{"dash", "util-linux"}})
	if other := key(Packages{Suite: "bookworm", Names: []string{"util-linux", "dash"}}); one != other {
		t.Error("the order of packages counts")
	}
	for _, p := range []Packages{{Suite: "trixie", Names: []string{"dash", "util-linux"}}, {Suite: "bookworm", Names: []string{"dash"}}} {
		if key(p) == one {
			t.Errorf("%v has the same key", p)
		}
	}
}
