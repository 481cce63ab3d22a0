package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const loopControl = "/dev/loop-control"

// mountFile mounts a file with an XFS file system. The loop device goes with the mount.
func mountFile(file, target string) error {
	loop, err := attach(file)
	if err != nil {
		return fmt.Errorf("attach %s to a loop device: %w", file, err)
	}
	if err := unix.Mount(loop.Name(), target, "xfs", 0, ""); err != nil {
		err = fmt.Errorf("mount %s on %s: %w", file, target, err)
		return errors.Join(err, loop.Close())
	}
	return loop.Close()
}

// attach connects a file with a free loop device. The kernel frees the device when it is
// neither open nor mounted.
func attach(file string) (*os.File, error) {
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = backing.Close() }() // The device holds the file.
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close() }() // It was only asked.
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free one: %w", err)
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{
			Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}, //nolint:gosec // A file descriptor is not negative.
		})
		if err == nil {
			return loop, nil
		}
		// Another program was faster.
		if err = errors.Join(err, loop.Close()); !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
}

// deviceOf returns the loop device that is mounted on a directory.
func deviceOf(dir string) (string, error) {
	mounted, err := isMounted(dir)
	if err != nil {
		return "", err
	}
	if !mounted {
		return "", fmt.Errorf("%s is not mounted", dir)
	}
	var found unix.Stat_t
	if err := unix.Stat(dir, &found); err != nil {
		return "", fmt.Errorf("stat %s: %w", dir, err)
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(found.Dev), unix.Minor(found.Dev)))
	return filepath.Join("/dev", filepath.Base(device)), err
}

// readSize lets a loop device read the size of its file again.
func readSize(device string) error {
	loop, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0), loop.Close())
}
