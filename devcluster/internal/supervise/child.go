package supervise

import (
	"errors"
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
		_, _ = io.Copy(io.Discard, parentPipe)
		os.Exit(1) //nolint:forbidigo // there is no caller to return an error to
	}()
	return nil
}
