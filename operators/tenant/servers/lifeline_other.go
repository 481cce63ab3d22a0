//go:build !linux

package servers

import (
	"os/exec"
	"syscall"
)

// EndWithParent does nothing: other systems than Linux do not offer it.
func EndWithParent(*exec.Cmd, syscall.Signal) {}
