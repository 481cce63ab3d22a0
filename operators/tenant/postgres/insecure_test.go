package postgres_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// impostor listens in the place of a server, speaks no TLS, asks for the password by a method of its choice, and keeps what it hears.
type impostor struct {
	// asks is the message by which it asks.
	asks []byte

	mu    sync.Mutex
	heard bytes.Buffer
	tries int
}

func newImpostor(t *testing.T, asks []byte) (*impostor, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &impostor{asks: asks}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go made.greet(client)
		}
	}()
	return made, listener.Addr().String()
}

func (i *impostor) greet(client net.Conn) {
	defer func() { _ = client.Close() }()
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		if binary.BigEndian.Uint32(head[4:]) == 80877103 { // SSLRequest.
			_, _ = client.Write([]byte("N"))
			continue
		}
		_, _ = io.CopyN(io.Discard, client, int64(binary.BigEndian.Uint32(head))-8)
		i.mu.Lock()
		i.tries++
		i.mu.Unlock()
		_, _ = client.Write(i.asks)
		answer := make([]byte, 1024)
		read, _ := client.Read(answer)
		i.mu.Lock()
		i.heard.Write(answer[:read])
		i.mu.Unlock()
		return
	}
}

// A password is not sent in clear, or as MD5, to a server that has not shown by TLS who it is.
func TestAPasswordIsNotSentToAnUnverifiedServer(t *testing.T) {
	t.Parallel()
	for method, asks := range map[string][]byte{
		"password": {'R', 0, 0, 0, 8, 0, 0, 0, 3},
		"md5":      {'R', 0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4},
	} {
		for _, parameters := range []string{"", "?sslmode=disable", "?sslmode=prefer"} {
			fake, address := newImpostor(t, asks)
			server, err := postgres.Open(postgres.Config{DSN: credential.NewPassword("postgres://admin:hush@" + address + "/postgres" + parameters)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			err = server.Check(t.Context())
			fake.mu.Lock()
			if fake.heard.Len() > 0 || fake.tries == 0 {
				t.Errorf("%s, %s: after %d tries it has %q", method, parameters, fake.tries, fake.heard.String())
			}
			fake.mu.Unlock()
			if err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s, %s: %v", method, parameters, err)
			}
		}
	}
}
