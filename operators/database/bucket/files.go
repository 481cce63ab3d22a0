package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// checksumFile is the file of a backup with the checksums of the others.
const checksumFile = "sha256"

// contents returns the files of a backup that have a checksum, small ones first.
func contents() []string { return []string{"about", "roles", "dump"} }

// allFiles returns the files of a backup in the order in which they are sent.
func allFiles() []string { return append(contents(), checksumFile) }

// localBackups returns the names of the backups in a folder, the oldest first.
func localBackups(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, ok := parseName(entry.Name()); ok && entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// parseChecksums returns the checksums of a file that sha256sum has written, by name of file. Backup is for the error.
func parseChecksums(backup, text string) (map[string]string, error) {
	sums := make(map[string]string)
	for line := range strings.Lines(text) {
		sum, name, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if decoded, err := hex.DecodeString(sum); err == nil && len(decoded) == sha256.Size && len(name) > 1 {
			sums[name[1:]] = strings.ToLower(sum) // Before the name is a space or a star.
		}
	}
	for _, file := range contents() {
		if sums[file] == "" {
			return nil, &damagedError{backup, checksumFile + " has no checksum of " + file}
		}
	}
	return sums, nil
}

// filePaths returns the paths of the files of a backup in its folder.
func filePaths(folder string) map[string]string {
	paths := make(map[string]string)
	for _, file := range allFiles() {
		paths[file] = filepath.Join(folder, file)
	}
	return paths
}

// verify checks that the files of a backup have its checksums.
func verify(ctx context.Context, backup string, paths map[string]string) error {
	text, err := os.ReadFile(paths[checksumFile])
	if err != nil {
		return err
	}
	sums, err := parseChecksums(backup, string(text))
	if err != nil {
		return err
	}
	for _, file := range contents() {
		sum, err := checksum(ctx, paths[file])
		if err != nil {
			return err
		}
		if sum != sums[file] {
			return &damagedError{backup, "the checksum of " + file + " is another one"}
		}
	}
	return nil
}

func checksum(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, &contextReader{ctx.Err, file}); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// contextReader ends when a context ends.
type contextReader struct {
	ended func() error
	io.Reader
}

func (r *contextReader) Read(data []byte) (int, error) {
	if err := r.ended(); err != nil {
		return 0, err
	}
	return r.Reader.Read(data)
}

// syncFolder writes the names in a folder to the disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
