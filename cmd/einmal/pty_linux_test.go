package main_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// onTerminal starts a command on a new pseudo-terminal. Text written to the returned file is typed on it.
func onTerminal(t *testing.T, cmd *exec.Cmd) (*program, *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	var number, locked int32
	control(t, keyboard, syscall.TIOCSPTLCK, &locked)
	control(t, keyboard, syscall.TIOCGPTN, &number)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	p := launch(t, cmd)
	go func() { _, _ = io.Copy(p.screen, keyboard) }()
	return p, keyboard
}

func control(t *testing.T, file *os.File, request uintptr, value *int32) {
	t.Helper()
	// Fd would make the file blocking, and Close would then wait for a read in progress.
	connection, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var code syscall.Errno
	err = connection.Control(func(fd uintptr) {
		_, _, code = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
	})
	if err != nil || code != 0 {
		t.Fatal(err, code)
	}
}
