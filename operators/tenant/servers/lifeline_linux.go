package servers

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the kernel send a signal to a command when this process ends, however it ends: a test that is killed leaves no server.
func EndWithParent(command *exec.Cmd, signal syscall.Signal) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: signal}
}
