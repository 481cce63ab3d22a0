package servers

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill a command when this process ends, however it ends: a test that is killed leaves no server.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
