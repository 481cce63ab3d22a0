package realnode

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// DialAs connects to an IP address and port as a process does: in its network namespace, where Services can be reached.
func DialAs(ctx context.Context, process, address string) (net.Conn, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the own network namespace: %w", err)
	}
	defer func() { _ = own.Close() }() // It was only read.
	other, err := os.Open("/proc/" + process + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the network namespace of a process: %w", err)
	}
	defer func() { _ = other.Close() }()
	runtime.LockOSThread() // A thread that cannot return ends with its goroutine.
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter the network namespace of a process: %w", err)
	}
	connection, dialed := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("leave the network namespace of a process: %w", err)
	}
	runtime.UnlockOSThread()
	return connection, dialed //nolint:wrapcheck // The caller knows the address.
}
