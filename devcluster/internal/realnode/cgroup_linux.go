package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupDir = "/sys/fs/cgroup"

// hierarchies returns the roots of the mounted cgroup hierarchies: one of version 2, or one for each controller of version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupDir, "cgroup.controllers")); err == nil {
		return []string{cgroupDir}, nil
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, err
	}
	var roots []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[2], "cgroup") {
			roots = append(roots, fields[1])
		}
	}
	return roots, nil
}

// hasCgroups checks that containers can be limited.
func hasCgroups() error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	if slices.Contains(roots, cgroupDir) {
		return nil // Version 2 has all controllers in one place.
	}
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !slices.Contains(roots, filepath.Join(cgroupDir, controller)) {
			return fmt.Errorf("the cgroup controller %s is not mounted at %s", controller, filepath.Join(cgroupDir, controller))
		}
	}
	return nil
}

// makeCgroup creates the cgroup of a cluster in all hierarchies.
func makeCgroup(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, name), 0o750); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
		// In version 1 a new cgroup has no processors and no memory nodes, and no process can join it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := copyFile(filepath.Join(root, file), filepath.Join(root, name, file)); err != nil {
				return fmt.Errorf("create cgroup: %w", err)
			}
		}
	}
	return nil
}

// copyFile copies the content of a file, if it exists, into another one that exists.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644) //nolint:gosec // The file exists with its mode.
}

// RemoveCgroups removes the empty cgroups of the cluster with a data directory. The kernel keeps them when the last process in them has been killed.
// It ignores those that are in use.
func RemoveCgroups(data string) error {
	name := cgroupOf(data)
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		var all []string
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, path := range slices.Backward(all) {
			_ = os.Remove(path) // One that is in use stays.
		}
	}
	return nil
}
