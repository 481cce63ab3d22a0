package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
)

const (
	loopback = "127.0.0.1"
	portName = "port"
)

// port is a reserved TCP port of the loopback interface. Its socket is bound but
// does not listen, and shares the port with a component that is started with
// --permit-port-sharing. No other program can take the port between the reservation
// and the start of the component.
type port struct {
	fd     int
	number int
}

// reservePort reserves the wanted port, or any free port if wanted is 0.
func reservePort(wanted int) (port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return port{}, fmt.Errorf("reserve a port: %w", err)
	}
	unix.CloseOnExec(fd)
	p := port{fd: fd}
	// SO_REUSEADDR is not set: it would let other programs that set it listen.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: wanted, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		p.number, err = numberOf(fd)
	}
	if err != nil {
		return port{}, errors.Join(fmt.Errorf("reserve port %d on %s: %w", wanted, loopback, err), p.release())
	}
	return p, nil
}

func numberOf(fd int) (int, error) {
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := addr.(*unix.SockaddrInet4)
	if !ok {
		return 0, errors.New("the socket has no IPv4 address")
	}
	return inet.Port, nil
}

func (p port) release() error { return unix.Close(p.fd) }

func (p port) String() string { return strconv.Itoa(p.number) }

// address returns the address in the form host:port.
func (p port) address() string { return net.JoinHostPort(loopback, p.String()) }

// url returns the HTTPS URL of a path on the port.
func (p port) url(path string) string {
	return "https://" + p.address() + path
}

// reserveServerPort reserves the port of the previous run, so that its kubeconfig
// stays valid. If that port is in use, it reserves another one and returns a note
// for the user.
func reserveServerPort(dir instance.Dir) (p port, note string, err error) {
	content, err := os.ReadFile(dir.File(portName))
	if err == nil {
		last, errNumber := strconv.Atoi(strings.TrimSpace(string(content)))
		if errNumber == nil {
			if p, err = reservePort(last); err == nil {
				return p, "", nil
			}
			note = fmt.Sprintf("port %d of the previous run is in use; using another port", last)
		}
	}
	p, err = reservePort(0)
	if err != nil {
		return p, "", err
	}
	err = os.WriteFile(dir.File(portName), []byte(p.String()+"\n"), 0o600)
	return p, note, err
}
