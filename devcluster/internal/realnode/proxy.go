package realnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/einmal-operators/einmal/devcluster/internal/dns"
)

// dialer opens a connection.
type dialer func(ctx context.Context) (net.Conn, error)

// dialing returns a dialer for an address.
func dialing(network, address string) dialer {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}

// serve calls a function for each connection, until the context ends.
func serve(ctx context.Context, l net.Listener, each func(context.Context, net.Conn)) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go each(ctx, conn)
	}
}

// forwarding connects each connection to another one.
func forwarding(to dialer) func(context.Context, net.Conn) {
	return func(ctx context.Context, from net.Conn) {
		other, err := to(ctx)
		if err != nil {
			_ = from.Close() // The client sees the end.
			return
		}
		join(from, from, other)
	}
}

// connecting serves HTTP CONNECT: it connects to the address that the client names.
func connecting(to func(address string) dialer) func(context.Context, net.Conn) {
	return func(ctx context.Context, from net.Conn) {
		reader := bufio.NewReader(from)
		request, err := http.ReadRequest(reader)
		if err != nil || request.Method != http.MethodConnect {
			_ = from.Close() // Only the API server has the socket.
			return
		}
		other, err := to(request.Host)(ctx)
		if err != nil {
			_, _ = fmt.Fprintf(from, "HTTP/1.1 502 Bad Gateway\r\n\r\n%v\n", err)
			_ = from.Close() // The answer says why.
			return
		}
		if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			_ = from.Close()
			_ = other.Close() // The client is gone.
			return
		}
		join(from, reader, other)
	}
}

// throughProxy connects to an address through an HTTP CONNECT proxy.
func throughProxy(proxy dialer, address string) dialer {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := proxy(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if err := established(conn); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s in the node's network: %w", address, err), conn.Close())
		}
		return conn, nil
	}
}

// established reads the answer of a proxy, and nothing of what follows it.
func established(conn io.Reader) error {
	const longest = 1024
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := io.ReadFull(conn, one); err != nil {
			return err
		}
		if len(head) == longest {
			return errors.New("the answer of the proxy is too long")
		}
	}
	if !bytes.Contains(head, []byte(" 200 ")) {
		first, _, _ := bytes.Cut(head, []byte("\r\n"))
		return fmt.Errorf("the proxy answered %s", first)
	}
	return nil
}

// join copies between two connections until both directions have ended. What comes from the first is read from a reader.
func join(first net.Conn, reader io.Reader, second net.Conn) {
	done := make(chan struct{})
	go func() {
		pass(second, reader)
		close(done)
	}()
	pass(first, second)
	<-done
	_ = first.Close()
	_ = second.Close() // Nothing is left to send.
}

// pass copies until the end of a source, and then tells the destination that nothing more comes.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, can := to.(interface{ CloseWrite() error }); err == nil && can {
		_ = half.CloseWrite() // The other direction goes on.
		return
	}
	_ = to.Close()
}

// inNode reports whether an address of the form host:port is in the node's network: that of the node, a Pod or a Service.
func inNode(address string) bool {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return false // A host name, such as that of a webhook with a URL.
	}
	for _, of := range []string{Address + "/32", ServiceRange, PodRange} {
		if netip.MustParsePrefix(of).Contains(to.Addr()) {
			return true
		}
	}
	return false
}

// listenIn listens on a socket in a directory, however long the path of the directory is.
func listenIn(dir *os.File, name string) (net.Listener, error) {
	path := inDir(dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path) //nolint:noctx // It returns at once.
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o600)
}

// inDir is a short path of a file in a directory.
func inDir(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}

// ServeMachine joins the machine's network with the node's, until the context ends. Processes of the node reach the API server at the given address, and
// the API server reaches the node. The node's DNS server resolves other names than those of the cluster here. It listens when it returns.
func ServeMachine(ctx context.Context, data, apiServer string) error {
	dir, err := os.Open(data)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = dir.Close() })
	toNode := dialing("unix", inDir(dir, nodeSocket))
	reach := func(address string) dialer {
		if inNode(address) {
			return throughProxy(toNode, address)
		}
		return dialing("tcp", address) // A webhook with a URL, which can be a program on this machine.
	}
	for name, each := range map[string]func(context.Context, net.Conn){
		apiSocket:    forwarding(dialing("tcp", apiServer)),
		egressSocket: connecting(reach),
	} {
		l, err := listenIn(dir, name)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", name, err)
		}
		go serve(ctx, l, each)
	}
	l, err := listenIn(dir, dnsSocket)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", dnsSocket, err)
	}
	go dns.ServeMachine(ctx, l)
	return nil
}
