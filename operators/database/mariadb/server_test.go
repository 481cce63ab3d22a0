package mariadb

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"sync"
	"testing"
)

// challenge is what every greeting and every switch of method has.
const challenge = "01234567890123456789"

// script is what a server sends.
type script struct {
	// greeting is its first packet, and login its answer to the login. An empty one ends the connection.
	greeting, login []byte
	// query are its answers to a statement.
	query [][]byte
	// silent is true if the server says nothing more instead of ending the connection.
	silent bool
	// key is that of the server. It has none if this is nil.
	key *rsa.PrivateKey
}

// server pretends to be a MariaDB server, and records what it gets.
type server struct {
	script   script
	listener net.Listener
	done     sync.WaitGroup
	lock     sync.Mutex
	got      [][]byte
}

// serve starts a server on this machine. The test ends it.
func serve(t *testing.T, s script) *server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := &server{script: s, listener: listener}
	started.done.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			started.done.Go(func() {
				defer func() { _ = connection.Close() }()
				started.talk(connection)
			})
		}
	})
	t.Cleanup(started.stop)
	return started
}

func (s *server) close() { _ = s.listener.Close() }

// stop waits until all connections have ended. The clients end theirs.
func (s *server) stop() {
	s.close()
	s.done.Wait()
}

func (s *server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.listener.Addr().String())
}

func (s *server) client() Client { return Client{Dial: s.dial} }

func (s *server) packets() [][]byte {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.got
}

// knows reports whether a text has arrived, also encrypted with the key of the server.
func (s *server) knows(text string) bool {
	for _, packet := range s.packets() {
		if bytes.Contains(packet, []byte(text)) {
			return true
		}
		if s.script.key == nil {
			continue
		}
		plain, err := rsa.DecryptOAEP(sha1.New(), nil, s.script.key, packet, nil)
		if err != nil {
			continue
		}
		for i := range plain {
			plain[i] ^= challenge[i%len(challenge)]
		}
		if bytes.Contains(plain, []byte(text)) {
			return true
		}
	}
	return false
}

// talk follows the script, and asks for the password in every way that the client seems to offer.
func (s *server) talk(connection net.Conn) {
	if !s.send(connection, 0, s.script.greeting) {
		return
	}
	sequence, _, ok := s.receive(connection)
	if !ok || !s.send(connection, sequence+1, s.script.login) {
		return
	}
	for {
		sequence, packet, ok := s.receive(connection)
		switch {
		case !ok:
			return
		case sequence == 0:
			s.answer(connection, packet)
			return
		default:
			s.send(connection, sequence+1, s.reply(packet))
		}
	}
}

// answer follows the script after a statement, and after all else does nothing.
func (s *server) answer(connection net.Conn, packet []byte) {
	const query = 3
	if packet[0] != query {
		return
	}
	for i, answer := range s.script.query {
		s.send(connection, byte(i+1), answer)
	}
	if s.script.silent {
		s.send(connection, 0, nil)
	}
	for ok := true; ok; {
		_, _, ok = s.receive(connection)
	}
}

// reply answers what the client sends for a method: a request for the key, a hash of caching_sha2_password, or what may be the password.
func (s *server) reply(packet []byte) []byte {
	const hash = 32
	switch {
	case len(packet) == 1 && s.script.key != nil:
		return encode(&s.script.key.PublicKey)
	case len(packet) == hash:
		return []byte{1, 4}
	}
	return accepted()
}

// send reports whether there was something to send. A server that is silent waits until the client ends the connection.
func (s *server) send(connection net.Conn, sequence byte, packet []byte) bool {
	if len(packet) == 0 {
		if s.script.silent {
			_, _ = io.Copy(io.Discard, connection)
		}
		return false
	}
	length := len(packet)
	_, err := connection.Write(append([]byte{byte(length), byte(length >> 8), byte(length >> 16), sequence}, packet...))
	return err == nil
}

func (s *server) receive(connection net.Conn) (byte, []byte, bool) {
	var header [4]byte
	if _, err := io.ReadFull(connection, header[:]); err != nil {
		return 0, nil, false
	}
	packet := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err := io.ReadFull(connection, packet)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.got = append(s.got, packet)
	return header[3], packet, err == nil && len(packet) > 0
}

// greeting returns the first packet of a server that asks for a method.
func greeting(name string) []byte {
	const capabilities = 0x013ff7ff // All that the client has, without TLS.
	packet := append([]byte{10}, "10.11.19-MariaDB\x00"+"\x01\x00\x00\x00"+challenge[:8]+"\x00"...)
	packet = append(packet, capabilities&0xff, capabilities>>8&0xff, 45, 2, 0, capabilities>>16&0xff, capabilities>>24, 21)
	packet = append(packet, make([]byte, 10)...)
	return append(packet, challenge[8:]+"\x00"+name+"\x00"...)
}

func switchTo(name string) []byte { return append([]byte{0xfe}, name+"\x00"+challenge+"\x00"...) }

func accepted() []byte { return []byte{0, 0, 0, 2, 0, 0, 0} }

func refusal(number uint16, message string) []byte {
	return append([]byte{0xff, byte(number), byte(number >> 8)}, "#28000"+message...)
}

// column describes a column with a text, and row is one of its rows.
func column() []byte {
	return append([]byte("\x03def\x00\x00\x00\x01v\x00\x0c"), 45, 0, 255, 255, 0, 0, 252, 0, 0, 0, 0, 0)
}

func row(text string) []byte {
	if length := len(text); length > 250 {
		return append([]byte{0xfc, byte(length), byte(length >> 8)}, text...)
	}
	return append([]byte{byte(len(text))}, text...)
}

// end ends the rows.
func end() []byte { return []byte{0xfe, 0, 0, 2, 0, 0, 0} }

func privateKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// encode returns a packet with a key.
func encode(key *rsa.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil
	}
	return append([]byte{1}, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
}
