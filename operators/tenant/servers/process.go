package servers

import (
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // Closed when it has ended.
}

// start starts a server that writes to a log.
func start(command *exec.Cmd, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", command.Path, err)
	}
	defer func() { _ = file.Close() }() // The process has it open by itself.
	command.Stdout, command.Stderr = file, file
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true // Ctrl-C must reach only this process, which stops the server after its users.
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	running := &process{command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // How it ended is in its log.
		close(running.ended)
	}()
	return running, nil
}

// stop sends a signal, and waits until the process has ended. It is killed when that takes too long.
func (p *process) stop(signal syscall.Signal) error {
	_ = p.command.Process.Signal(signal) // It may have ended already.
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end when it was told to, and was killed", p.command.Path)
	}
}

// freePort returns an unused port of 127.0.0.1. It is below the ports that Linux gives to outgoing connections, so that none of these takes the
// port before the server listens on it, or while the server is stopped.
func freePort() (string, error) {
	const first, ports, tries = 20000, 12768, 100
	var err error
	for range tries {
		port := strconv.Itoa(first + mathrand.IntN(ports)) //nolint:gosec // It need not be unpredictable.
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil { //nolint:noctx // It takes no time.
			return port, listener.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

// The files with what is chosen at the first start.
const (
	secretFile = "password"
	portFile   = "port"
)

// kept is the content of a file in a server's folder, which is made if it is not there.
func kept(folder, name string, content func() (string, error)) (string, error) {
	path := filepath.Join(folder, name)
	if found, err := os.ReadFile(path); err == nil {
		return strings.TrimSpace(string(found)), nil
	}
	made, err := content()
	if err != nil {
		return "", err
	}
	//nolint:gosec // The user that runs PostgreSQL reads it, and the folder is closed to others.
	if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
		return "", fmt.Errorf("keep %s in %s: %w", name, folder, err)
	}
	return made, nil
}
