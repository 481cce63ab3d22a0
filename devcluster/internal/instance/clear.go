package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// VersionName is the name of the file with the version of Kubernetes that wrote
// the data.
const VersionName = "version"

// createdPatterns lists the files and directories that devcluster creates in its
// data directory, as patterns of filepath.Match. Matching directories are deleted
// with their contents.
func createdPatterns() []string {
	return []string{
		"etcd/member", "etcd.sock", "etcd.ready", "api.sock", "node.sock", "egress.sock",
		"node/*",
		"pki/*.crt", "pki/*.key", "pki/*.kubeconfig", "pki/.kubeconfig-*",
		"logs/*.log", "logs/*.log.1",
		"kubeconfig", ".kubeconfig-*", "port", VersionName, stateName, stateName + ".new",
	}
}

// Clear deletes the files that devcluster created in the directory, except for the
// marker and the lock. It returns the paths of all other files, which it keeps,
// relative to the directory. The caller must hold the lock.
func (d Dir) Clear() (kept []string, err error) {
	if !d.Ours() {
		return nil, fmt.Errorf("clear data directory %s: it was not created by devcluster", d.Path)
	}
	for _, pattern := range createdPatterns() {
		if err := d.removeMatches(pattern); err != nil {
			return nil, err
		}
	}
	for _, folder := range folders() {
		others, err := d.removeEmpty(folder)
		if err != nil {
			return nil, err
		}
		kept = append(kept, others...)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); !slices.Contains(append(folders(), markerName, lockName), name) {
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// folders lists the subdirectories that devcluster creates. They may contain files
// of the user.
func folders() []string { return []string{"etcd", "pki", "logs", "node"} }

// removeEmpty deletes a folder if it is empty. Otherwise it returns its contents.
func (d Dir) removeEmpty(folder string) (kept []string, err error) {
	entries, err := os.ReadDir(d.File(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		kept = append(kept, filepath.Join(folder, entry.Name()))
	}
	if len(kept) > 0 {
		return kept, nil
	}
	return nil, os.Remove(d.File(folder))
}

// removeMatches deletes the files that match a pattern. It does not use
// filepath.Glob, because the path of the directory may contain special characters.
func (d Dir) removeMatches(pattern string) error {
	folder, name := filepath.Split(pattern)
	entries, err := os.ReadDir(d.File(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		matched, err := filepath.Match(name, entry.Name())
		if err != nil {
			return err
		}
		if matched {
			if err := os.RemoveAll(d.File(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
