package apiserver

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Start gives a test a server of its own, which ends with the test, and a client with all rights.
func Start(tb testing.TB, options ...Option) (*Server, client.Client) {
	tb.Helper()
	server, err := New(options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	api, err := client.New(server.Config(), client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return server, api
}
