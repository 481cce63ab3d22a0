package supervise

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// FollowParent makes this process, a child started by a Group, end as soon as
// its parent is gone. It returns an error when the process was started in any
// other way.
func FollowParent() error {
	lifeline := os.NewFile(lifelineFD, "lifeline")
	info, err := lifeline.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errors.New(`a component is started by "devcluster up", not by hand`)
	}
	// Neither may reach a program that this process executes in turn.
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(holdFD)
	go func() {
		// Nothing is ever written, so this returns at the end of the parent.
		_, _ = io.Copy(io.Discard, lifeline)
		os.Exit(1) //nolint:forbidigo // nobody is left to return an error to
	}()
	return nil
}
