package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// VersionName is the file with the version of Kubernetes that has written the
// data.
const VersionName = "version"

// made lists what devcluster makes in its directory, as patterns of
// filepath.Match. What matches is deleted with all that is in it.
func made() []string {
	return []string{
		"etcd/member", "etcd.sock", "etcd.ready",
		"pki/*.crt", "pki/*.key", "pki/*.kubeconfig", "pki/.kubeconfig-*",
		"logs/*.log", "logs/*.log.1",
		"kubeconfig", ".kubeconfig-*", "port", VersionName, stateName, stateName + ".new",
	}
}

// Clear deletes what devcluster has made in the directory, except what makes it
// ours. It returns the paths of what else is there, relative to the directory.
// The caller holds the lock.
func (d Dir) Clear() (kept []string, err error) {
	if !d.Ours() {
		return nil, fmt.Errorf("%s was not made by devcluster, so it is not deleted", d.Path)
	}
	for _, pattern := range made() {
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

// folders lists those that devcluster makes, and that may have other files in
// them.
func folders() []string { return []string{"etcd", "pki", "logs"} }

// removeEmpty deletes a folder if nothing is in it, and returns what is.
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

// removeMatches deletes what matches a pattern. The path of the directory is no
// part of the pattern: it may have characters with a meaning there.
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
