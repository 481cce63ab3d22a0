package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner is a user of this machine.
type owner struct{ uid, gid uint32 }

// postgresOwner is who runs PostgreSQL, which refuses to run as root: nil is who we are.
func postgresOwner() (*owner, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // No other user is needed.
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and needs a user postgres, who comes with its package (tools/servers.sh): %w", err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the group of the user postgres: %w", err)
	}
	return &owner{uint32(uid), uint32(gid)}, nil
}

// runs makes a command run as this user.
func (o *owner) runs(command *exec.Cmd) {
	if o == nil {
		return
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
}

// gets gives the user a file or folder.
func (o *owner) gets(path string) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give %s to the user that runs PostgreSQL: %w", path, err)
	}
	return nil
}
