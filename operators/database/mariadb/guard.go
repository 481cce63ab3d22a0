package mariadb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
)

const (
	// method is the only one by which the client logs in. The server gets a hash of the password and of a challenge.
	method = "mysql_native_password"
	// limit is how many bytes a server may send. What the client asks for is far shorter.
	limit = 4 << 10
)

// First bytes of packets: https://mariadb.com/kb/en/clientserver-protocol/.
const (
	packetOK     = 0x00
	packetSwitch = 0xfe
	packetError  = 0xff
)

// guard is a connection that hands the driver only packets that keep the password from a server that pretends to be another one. The driver has no setting
// for that: by caching_sha2_password and sha256_password it encrypts the password with a key that the server sends. For sha256_password it does so even if
// ServerPubKey names another key. The guard also stops requests for files, and packets for which the driver would allocate any amount of memory.
type guard struct {
	net.Conn
	// stage is what the server has to send next.
	stage stage
	// unread is what the driver has not read of the last packet.
	unread []byte
	// left is how many bytes the server may send.
	left int
	// failure is why a packet could not be read. The driver does not return that.
	failure error
}

type stage int

const (
	stageGreeting stage = iota
	stageLogin
	stageAnswer
	stageRest
)

// Read reads from a packet that the guard has checked.
func (g *guard) Read(buffer []byte) (int, error) {
	if len(g.unread) == 0 {
		if g.failure = g.next(); g.failure != nil {
			return 0, g.failure
		}
	}
	n := copy(buffer, g.unread)
	g.unread = g.unread[n:]
	return n, nil
}

// cause returns why the driver failed.
func (g *guard) cause(err error) error {
	if g.failure != nil && errors.Is(err, mysql.ErrInvalidConn) {
		return g.failure
	}
	return err
}

// next reads a packet and checks it.
func (g *guard) next() error {
	const header = 4 // Three bytes for the length, the lowest first, and one for the number.
	packet := make([]byte, header, header+1)
	if _, err := io.ReadFull(g.Conn, packet); err != nil {
		return err
	}
	length := int(packet[0]) | int(packet[1])<<8 | int(packet[2])<<16
	if length == 0 || length > g.left {
		return fmt.Errorf("the server sends a packet of %d bytes, want from 1 to %d", length, g.left)
	}
	g.left -= length
	packet = append(packet, make([]byte, length)...)
	if _, err := io.ReadFull(g.Conn, packet[header:]); err != nil {
		return err
	}
	g.unread = packet
	return g.check(packet[header:])
}

// check refuses packets that the client does not expect.
func (g *guard) check(packet []byte) error {
	const shortestError = 9 // Its number and the SQLSTATE. The driver expects both.
	if packet[0] == packetError && len(packet) >= shortestError {
		return nil
	}
	switch g.stage {
	case stageGreeting:
		g.stage = stageLogin
		return checkGreeting(packet)
	case stageLogin:
		if packet[0] != packetOK {
			return checkSwitch(packet)
		}
		g.stage = stageAnswer
		return checkOK(packet)
	case stageAnswer:
		g.stage = stageRest
		const columns = 1 // One byte more can follow: whether the server describes the column.
		if packet[0] != columns || len(packet) > 2 {
			return errors.New("the server does not answer with one column")
		}
	case stageRest:
	}
	return nil
}

// checkGreeting expects the first packet of a server, complete, with the method of the client.
func checkGreeting(packet []byte) error {
	const protocol, fixed = 10, 44 // How many bytes are between the version and the method.
	_, after, ended := bytes.Cut(packet, []byte{0})
	if packet[0] != protocol || !ended || len(after) < fixed {
		return errors.New("the server sends a malformed greeting")
	}
	return checkMethod(bytes.TrimRight(after[fixed:], "\x00"))
}

// checkSwitch expects that the server asks for the method of the client, with another challenge.
func checkSwitch(packet []byte) error {
	const challenge = 20
	name, data, _ := bytes.Cut(packet[1:], []byte{0})
	switch {
	case packet[0] != packetSwitch:
		return fmt.Errorf("the server answers the login with a packet of the kind %#02x", packet[0])
	case len(packet) == 1:
		return checkMethod([]byte("mysql_old_password"))
	case string(name) == method && len(data) != challenge && len(data) != challenge+1:
		return fmt.Errorf("the server sends a challenge of %d bytes, want %d", len(data), challenge)
	}
	return checkMethod(name)
}

func checkMethod(name []byte) error {
	if string(name) != method {
		return fmt.Errorf("the server asks for the password by %q; use %s, which keeps it from a server that pretends to be this one", name, method)
	}
	return nil
}

// checkOK expects two numbers of one byte, the status and the count of warnings. The driver reads beyond a packet that is shorter.
func checkOK(packet []byte) error {
	const shortest, longestNumber = 7, 0xfa
	if len(packet) < shortest || packet[1] > longestNumber || packet[2] > longestNumber {
		return errors.New("the server accepts the login with a malformed packet")
	}
	return nil
}
