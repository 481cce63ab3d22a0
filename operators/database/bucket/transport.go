package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// newTransport returns a transport that accepts the certificates of the system and those of an authority. A request without an answer and a connection
// that transports nothing end after the timeout.
func newTransport(authority string, timeout time.Duration) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	transport.ResponseHeaderTimeout = timeout
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &timedConnection{connection, timeout}, nil
	}
	if authority == "" {
		return transport, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of the system: %w", err)
	}
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("certificate authority: PEM without a certificate")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// timedConnection ends when it transports nothing for a time. The timeouts of the transport do not include the bodies of requests and answers.
type timedConnection struct {
	net.Conn

	timeout time.Duration
}

func (c *timedConnection) Read(data []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(data)
}

func (c *timedConnection) Write(data []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(data)
}

// extend moves the deadlines, also those of running calls: while a request is sent, the transport already waits for the answer. The read deadline is later,
// so that a blocked write is reported as such.
func (c *timedConnection) extend() error {
	if err := c.SetReadDeadline(time.Now().Add(2 * c.timeout)); err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Now().Add(c.timeout))
}
