package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unit is what the size of a disk in bytes is a multiple of.
	unit = 1 << 20
	// staleTime is how long a disk may still be mounted by a node that was killed.
	staleTime     = 10 * time.Second
	retryInterval = 100 * time.Millisecond
)

// Problem returns why this machine cannot have disks; nil if it can.
func Problem() error {
	for _, program := range []string{"mkfs.xfs", "xfs_growfs"} {
		if _, err := exec.LookPath(program); err != nil {
			return errors.New(program + " is not installed; install it with: apt-get install --no-install-recommends xfsprogs")
		}
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	modules, err := filepath.Glob("/lib/modules/*/kernel/fs/xfs")
	if err != nil || !strings.Contains(string(known), "\txfs\n") && len(modules) == 0 {
		return errors.New("the kernel has no file system xfs")
	}
	if _, err := os.Stat(loopControl); err != nil {
		return fmt.Errorf("the machine has no loop devices: %w", err)
	}
	return nil
}

// rounded returns the size of a disk for at least size bytes.
func rounded(size int64) int64 {
	return max(Smallest, (size+unit-1)/unit*unit)
}

// Create makes and mounts a disk for at least size bytes. It does nothing if the disk
// exists. Every user may write to its data directory, because a volume has no owner:
// the kubelet sets the group that a Pod asks for.
func (f Folder) Create(name string, size int64) error {
	if err := f.format(name, rounded(size)); err != nil {
		return fmt.Errorf("create %s: %w", f.file(name), err)
	}
	if err := f.Mount(name); err != nil {
		return err
	}
	data := f.Data(name)
	if err := os.Mkdir(data, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(data, 0o777) //nolint:gosec // As said above; the directories above it have mode 0700.
}

// format makes the file of a disk. Its blocks are allocated when they are written.
func (f Folder) format(name string, size int64) error {
	if _, err := os.Stat(f.file(name)); err == nil {
		return nil
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	unfinished := f.file(name) + ".new"
	out, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Truncate(size), out.Close()); err != nil {
		return err
	}
	if err := run("mkfs.xfs", "-q", "-f", unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, f.file(name))
}

// MountAll mounts all disks. One that cannot be mounted does not keep the others from
// it. Its error is returned at the end.
func (f Folder) MountAll() error {
	files, err := filepath.Glob(f.file("*"))
	if err != nil {
		return err
	}
	failed := make([]error, len(files))
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() { failed[i] = f.Mount(strings.TrimSuffix(filepath.Base(file), ".xfs")) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Mount mounts a disk, unless it is mounted.
func (f Folder) Mount(name string) error {
	target := f.mount(name)
	if err := os.MkdirAll(target, 0o700); err != nil {
		return err
	}
	mounted, err := isMounted(target)
	if err != nil || mounted {
		return err
	}
	deadline := time.Now().Add(staleTime)
	for {
		err := mountFile(f.file(name), target)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		// The kernel refuses a second mount of a file system until the first has ended.
		<-time.After(retryInterval)
	}
}

// Grow grows a mounted disk to at least size bytes. It never shrinks one.
func (f Folder) Grow(name string, size int64) error {
	file, size := f.file(name), rounded(size)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() < size {
		if err := os.Truncate(file, size); err != nil {
			return err
		}
	}
	device, err := deviceOf(f.mount(name))
	if err != nil {
		return fmt.Errorf("grow %s: %w", file, err)
	}
	if err := readSize(device); err != nil {
		return fmt.Errorf("grow %s: %s: %w", file, device, err)
	}
	return run("xfs_growfs", "-d", f.mount(name))
}

// Remove unmounts a disk and deletes it. It does nothing if there is none.
func (f Folder) Remove(name string) error {
	if err := f.unmount(name); err != nil {
		return err
	}
	for _, path := range []string{f.mount(name), f.file(name), f.file(name) + ".new"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// UnmountAll unmounts all disks.
func (f Folder) UnmountAll() error {
	files, err := filepath.Glob(f.file("*"))
	for _, file := range files {
		err = errors.Join(err, f.unmount(strings.TrimSuffix(filepath.Base(file), ".xfs")))
	}
	return err
}

func (f Folder) unmount(name string) error {
	target := f.mount(name)
	mounted, err := isMounted(target)
	if err != nil || !mounted {
		return err
	}
	if err := unix.Unmount(target, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", target, err)
	}
	return nil
}

// isMounted reports whether a file system is mounted on a directory. A directory that
// does not exist has none.
func isMounted(dir string) (bool, error) {
	var inside, outside unix.Stat_t
	err := unix.Stat(dir, &inside)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat %s: %w", dir, err)
	}
	if err := unix.Stat(filepath.Dir(dir), &outside); err != nil {
		return false, fmt.Errorf("stat %s: %w", filepath.Dir(dir), err)
	}
	return inside.Dev != outside.Dev, nil
}

// run runs a program. Its output is in the error.
func run(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput() //nolint:gosec,noctx // The programs are those above, and a file system must not be left half-made.
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return nil
}
