package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ExitWithParent makes this process, a child started by a Group, exit as soon as
// its parent exits. It returns an error if the process was started in any other
// way.
func ExitWithParent() error {
	parentPipe := os.NewFile(parentPipeFD, "parent pipe")
	info, err := parentPipe.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errors.New(`run a component: only "devcluster up" can start components`)
	}
	// Programs that this process executes must not inherit the descriptors.
	syscall.CloseOnExec(parentPipeFD)
	syscall.CloseOnExec(holdFD)
	go func() {
		// The parent never writes, so Copy returns when the parent exits.
		if _, err := io.Copy(io.Discard, parentPipe); err != nil {
			fmt.Fprintf(os.Stderr, "wait for the end of the parent process: %v\n", err)
		}
		os.Exit(1) //nolint:forbidigo // there is no caller to return an error to
	}()
	return nil
}

// StartCopy starts the program of this process again, with other arguments, and
// returns its process ID. The new process inherits all that this one has got from a
// Group: it exits with the same parent and holds the same lock. The caller waits for
// its end.
//
// It names descriptors and no os.File, because the garbage collector closes the
// descriptor of an os.File that is not used any more.
func StartCopy(args ...string) (pid int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(program, append([]string{program}, args...), &syscall.ProcAttr{ //nolint:gosec // runs the same binary
		Env: os.Environ(), Files: []uintptr{0, 1, 2, parentPipeFD, holdFD},
	})
}
