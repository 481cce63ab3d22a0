package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wire is the way to a server, on which a process dies: it is cut when the server has done what one of the messages asks for that carry
// statements without parameters, which is all that changes anything, and before its answer comes back. Then nothing gets through.
type wire struct {
	server string
	// at is the message at which it is cut, from 1.
	at int

	mu sync.Mutex
	// version is what the server is made to say of its own; "" is what it says.
	version string
	// pooled makes the server say that its processes have other IDs, as a pooler does. warning is the size of a warning to each new session.
	pooled  bool
	warning int
	// longest is the size of the longest message of the server.
	longest atomic.Int64
	// hellos are the first messages of connections, with their startup parameters.
	hellos []string
	seen   int
	cut    bool
	open   []net.Conn
}

// newWire listens in front of the shared server, and returns the DSN of the admin by this way.
func newWire(t *testing.T, at int) (*wire, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	way := &wire{server: shared.Address(), at: at}
	t.Cleanup(func() {
		_ = listener.Close()
		way.close()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go way.carry(t.Context(), client)
		}
	}()
	address, err := url.Parse(shared.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	address.Host = listener.Addr().String()
	return way, address.String()
}

// claim makes the server say that it is of a version.
func (w *wire) claim(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
}

// warn makes the server send a warning of a size to each new session.
func (w *wire) warn(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warning = size
}

// pool makes the server say that its processes have other IDs.
func (w *wire) pool() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pooled = true
}

// claimed is a message of the server, with what it is to say.
func (w *wire) claimed(kind byte, message []byte) []byte {
	const parameter = "server_version\x00"
	w.longest.Store(max(w.longest.Load(), int64(len(message))))
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == 'K' { // BackendKeyData
		if w.pooled {
			message[5] ^= 0x40
		}
		if w.warning > 0 {
			warning := "SWARNING\x00C22023\x00M" + strings.Repeat("x", w.warning) + "\x00\x00"
			return append(append(binary.BigEndian.AppendUint32([]byte{'N'}, uint32(4+len(warning))), warning...), message...)
		}
	}
	if w.version == "" || kind != 'S' || !strings.HasPrefix(string(message[5:]), parameter) {
		return message
	}
	text := parameter + w.version + "\x00"
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(text))), text...)
}

// wasCut reports whether the message was reached.
func (w *wire) wasCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, one := range w.open {
		_ = one.Close()
	}
}

// carry carries a connection.
func (w *wire) carry(ctx context.Context, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.server)
	if err != nil {
		_ = client.Close()
		return
	}
	w.mu.Lock()
	w.open = append(w.open, client, server)
	dead := w.cut
	w.mu.Unlock()
	if dead {
		w.close()
		return
	}
	var last sync.WaitGroup
	answers := make(chan struct{})
	last.Go(func() {
		_ = w.back(server, client, answers)
		_ = client.Close()
	})
	_ = w.forth(client, server, answers)
	_ = server.Close()
	last.Wait()
}

// forth carries what the client says. The first message has no type.
func (w *wire) forth(client io.Reader, server io.Writer, last chan struct{}) error {
	length := make([]byte, 4)
	if _, err := io.ReadFull(client, length); err != nil {
		return err
	}
	rest := int64(binary.BigEndian.Uint32(length)) - 4
	var hello strings.Builder
	if _, err := io.Copy(server, io.MultiReader(strings.NewReader(string(length)), io.TeeReader(io.LimitReader(client, rest), &hello))); err != nil {
		return err
	}
	w.mu.Lock()
	w.hellos = append(w.hellos, hello.String())
	w.mu.Unlock()
	for {
		kind, message, err := next(client)
		if err != nil {
			return err
		}
		if w.fatal(kind, message) {
			close(last)
		}
		if _, err := server.Write(message); err != nil {
			return err
		}
	}
}

// fatal tells that this is the message at which it is cut.
func (w *wire) fatal(kind byte, message []byte) bool {
	if kind != 'Q' || strings.HasPrefix(strings.ToLower(string(message[5:])), "select") {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	return w.seen == w.at
}

// back carries what the server says. After last it swallows the answer, and then cuts.
func (w *wire) back(server io.Reader, client io.Writer, last chan struct{}) error {
	for {
		kind, message, err := next(server)
		if err != nil {
			return err
		}
		select {
		case <-last:
			if kind == 'Z' { // It is ready for another statement.
				w.close()
				return nil
			}
		default:
			if _, err := client.Write(w.claimed(kind, message)); err != nil {
				return err
			}
		}
	}
}

// next reads a message: its type, its length without that, and the rest.
func next(from io.Reader) (byte, []byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > 64<<20 {
		return 0, nil, fmt.Errorf("a message of %d bytes", length)
	}
	message := make([]byte, 1+length)
	copy(message, head)
	_, err := io.ReadFull(from, message[5:])
	return head[0], message, err
}
