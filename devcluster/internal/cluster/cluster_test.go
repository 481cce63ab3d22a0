package cluster

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
)

// TestReservedPort checks that a component can listen on a reserved port and that
// other programs cannot.
func TestReservedPort(t *testing.T) {
	p, err := reservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(loopback, p.String())
	if err := take(t, address); err == nil {
		t.Error("another program can listen on the reserved port")
	}
	sharing := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return firstError(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}), &err)
	}}
	listener, err := sharing.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("the component cannot listen on the reserved port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	for range 20 { // all connections must reach the component
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	if err := p.release(); err != nil {
		t.Error(err)
	}
}

// take listens on the address until the test ends.
func take(t *testing.T, address string) error {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err == nil {
		t.Cleanup(func() { _ = listener.Close() })
	}
	return err
}

func firstError(err error, other *error) error {
	if err != nil {
		return err
	}
	return *other
}

func TestServerPortIsKeptWhenFree(t *testing.T) {
	dir := instance.Dir{Path: t.TempDir()}
	first, note, err := reserveServerPort(dir)
	if err != nil || note != "" {
		t.Fatalf("note %q, error %v", note, err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	second, note, err := reserveServerPort(dir)
	if err != nil || note != "" || second.number != first.number {
		t.Errorf("second port %d, note %q, error %v, want port %d again", second.number, note, err, first.number)
	}
	if err := second.release(); err != nil {
		t.Fatal(err)
	}
	if err := take(t, net.JoinHostPort(loopback, first.String())); err != nil {
		t.Fatal(err)
	}
	third, note, err := reserveServerPort(dir)
	if err != nil || third.number == first.number || !strings.Contains(note, first.String()) {
		t.Errorf("port %d, note %q, error %v", third.number, note, err)
	}
	content, err := os.ReadFile(dir.File(portName))
	if err != nil || strings.TrimSpace(string(content)) != strconv.Itoa(third.number) {
		t.Errorf("recorded port %q, error %v, want %d", content, err, third.number)
	}
}
