// Floodserver is a server that harms its clients, for tests: it answers each one with a message of a gigabyte. It takes the place of the shell in an image, so
// that it also succeeds as an init container and as a probe.
package main

import (
	"context"
	"encoding/binary"
	"log"
	"net"
	"os"
)

const gigabyte = 1 << 30

func main() {
	if os.Args[len(os.Args)-1] != "server" {
		return
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":5432")
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go flood(client)
	}
}

// flood sends an error message of PostgreSQL until the client hangs up: its kind, its length and what it says.
func flood(client net.Conn) {
	defer func() { _ = client.Close() }()
	message := binary.BigEndian.AppendUint32([]byte{'E'}, gigabyte)
	for chunk := make([]byte, 1<<20); ; message = chunk {
		if _, err := client.Write(message); err != nil {
			return
		}
	}
}
