package main

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel tell a command to end when this process ends, however it ends.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
