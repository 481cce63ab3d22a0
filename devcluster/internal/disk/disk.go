// Package disk makes file systems of a given size in files: XFS on loop devices. A
// disk that is full returns ENOSPC to its programs, and it can grow while it is
// mounted. Only Linux has them, and only root can mount them.
package disk

import "path/filepath"

// Smallest is the size in bytes of the smallest disk: mkfs.xfs makes no smaller file
// systems.
const Smallest = 300 << 20

// Unlimited says what volumes are on a machine that cannot have disks, and why.
func Unlimited(problem error) string {
	return "directories without a size limit: " + problem.Error()
}

// Folder is a directory with disks, an absolute path. A disk with a name has its file
// system in DIR/NAME.xfs, and is mounted on DIR/NAME.
type Folder string

// Data returns the directory for the data of a disk. It is in the file system, so that
// it exists only while the disk is mounted, and data is never written next to it.
func (f Folder) Data(name string) string { return filepath.Join(f.mount(name), "data") }

func (f Folder) mount(name string) string { return filepath.Join(string(f), name) }

func (f Folder) file(name string) string { return f.mount(name) + ".xfs" }
