//go:build !linux

package disk

import (
	"errors"
	"runtime"
)

// Problem returns an error. Only Linux has disks.
func Problem() error { return errors.New("the system is " + runtime.GOOS) }

// Create returns an error. Only Linux has disks.
func (f Folder) Create(string, int64) error { return Problem() }

// Grow returns an error. Only Linux has disks.
func (f Folder) Grow(string, int64) error { return Problem() }

// Remove returns an error. Only Linux has disks.
func (f Folder) Remove(string) error { return Problem() }
