package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// layoutVersion is to be raised when layers of packages are made in another way, so
// that cached ones are no longer used.
const layoutVersion = 1

// key identifies the request in the cache.
func (p Packages) key() (string, error) {
	p.Names, p.Exclude = slices.Sorted(slices.Values(p.Names)), slices.Sorted(slices.Values(p.Exclude))
	text, err := json.Marshal([]any{layoutVersion, runtime.GOARCH, p})
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// layer returns the file of the layer with the packages, from the cache if it has it.
func (p Packages) layer(ctx context.Context, o Options) (string, error) {
	key, err := p.key()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.Cache, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(o.Cache, "packages-"+key+".tar.gz")
	if info, err := os.Stat(file); err == nil && !o.NoCache {
		fmt.Fprintf(o.Progress, "using the cached packages of %s, from %s; --no-cache downloads them again\n", p.Suite, info.ModTime().Format("2006-01-02"))
		return file, nil
	}
	dir, err := os.MkdirTemp("", "devcluster-packages-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // It is in the directory for temporary files.
	debs, err := p.download(ctx, dir, o.Progress)
	if err != nil {
		return "", err
	}
	return file, writeLayer(file, func(l *layer) error {
		for _, deb := range debs {
			if err := unpack(ctx, l, deb); err != nil {
				return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
			}
		}
		return nil
	})
}

// download downloads the packages and what they depend on to a directory, and returns
// the files in the order of dependencies. apt gets a state of its own, so that neither
// the packages nor the releases of this machine count.
func (p Packages) download(ctx context.Context, dir string, progress io.Writer) ([]string, error) {
	apt, err := newApt(ctx, dir, p.Suite)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "reading the package lists of %s\n", p.Suite)
	if _, err := apt.run(ctx, "update"); err != nil {
		return nil, err
	}
	printed, err := apt.run(ctx, append([]string{"install", "--print-uris", "--yes", "--no-install-recommends"}, p.Names...)...)
	if err != nil {
		return nil, err
	}
	var versions, patterns []string
	for line := range strings.Lines(printed) {
		version, err := versionOf(line)
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	versions = slices.DeleteFunc(versions, p.excludes)
	fmt.Fprintf(progress, "downloading %d packages\n", len(versions))
	if _, err := apt.run(ctx, append([]string{"download"}, versions...)...); err != nil {
		return nil, err
	}
	for _, version := range versions {
		named, number, _ := strings.Cut(version, "=")
		patterns = append(patterns, named+"_"+strings.ReplaceAll(number, ":", "%3a")+"_*.deb")
	}
	return filesOf(dir, patterns)
}

// filesOf returns the one file for each pattern.
func filesOf(dir string, patterns []string) ([]string, error) {
	files := make([]string, 0, len(patterns))
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("apt-get download: expected one file %s, found %d", pattern, len(found))
		}
		files = append(files, found[0])
	}
	return files, nil
}

// versionOf returns NAME=VERSION from a line of apt-get --print-uris: the URI, the name of
// the file, its size and, unless it comes from a local directory, its hash.
func versionOf(line string) (string, error) {
	const file, columns, parts = 1, 3, 3
	if fields := strings.Fields(line); len(fields) >= columns {
		if found := strings.Split(fields[file], "_"); len(found) == parts {
			return found[0] + "=" + strings.ReplaceAll(found[1], "%3a", ":"), nil
		}
	}
	return "", fmt.Errorf("apt-get install --print-uris: unexpected line %q", line)
}

// excludes reports whether NAME=VERSION is left out.
func (p Packages) excludes(version string) bool {
	named, _, _ := strings.Cut(version, "=")
	return slices.ContainsFunc(p.Exclude, func(pattern string) bool {
		matched, err := path.Match(pattern, named)
		return err == nil && matched // Validate has tried each pattern.
	})
}

// isDocumentation reports whether an image does not need a file of a package. Licenses
// stay.
func isDocumentation(name string) bool {
	const depth = 4 // usr/share/man/file
	parts := strings.SplitN(name, "/", depth)
	return len(parts) == depth && parts[0] == "usr" && parts[1] == "share" && path.Base(name) != "copyright" &&
		slices.Contains([]string{"bug", "doc", "info", "lintian", "locale", "man"}, parts[2])
}

// unpack adds the files of a package to a layer.
func unpack(ctx context.Context, l *layer, deb string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb) //nolint:gosec // apt-get has downloaded it.
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = addPackage(l, tar.NewReader(out))
	if err == nil {
		_, err = io.Copy(io.Discard, out)
	}
	if failed := cmd.Wait(); failed != nil {
		err = errors.Join(fmt.Errorf("dpkg-deb: %w: %s", failed, bytes.TrimSpace(stderr.Bytes())), err)
	}
	return err
}

func addPackage(l *layer, files *tar.Reader) error {
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := inImage(h.Name)
		// Packages can have the links of the base, too.
		if h.Typeflag == tar.TypeSymlink && slices.Contains(linkedDirectories(), path.Clean(h.Name)) {
			continue
		}
		if isDocumentation(name) {
			continue
		}
		if err := l.add(*h, files); err != nil {
			return err
		}
	}
}
