//go:build !race

package component

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// EtcdSocket is the name of the socket that etcd listens on, relative to the
// data directory. A relative name keeps within the limit for socket paths,
// however deep the data directory is.
const EtcdSocket = "etcd.sock"

// EtcdReady is the name of an empty file, relative to the data directory, that
// appears when etcd serves its clients.
const EtcdReady = "etcd.ready"

const (
	tickMs     = 20
	electionMs = 100
)

// runEtcd runs a single etcd member that keeps its data in dir and listens on
// the unix socket EtcdSocket in the working directory alone. It has no port, so
// the permissions of the directory decide who reaches it.
func runEtcd(ctx context.Context, dir string) error {
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = dir
	cfg.LogLevel = "info"
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Host: EtcdSocket}}
	// A single member needs no listener for peers. What it advertises has to
	// look like an address, but nobody listens there and nobody asks for it.
	cfg.ListenPeerUrls = nil
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A single member elects itself; it need not wait for others to be heard.
	cfg.TickMs, cfg.ElectionMs = tickMs, electionMs

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case <-ctx.Done():
		return nil
	}
	if err := os.WriteFile(EtcdReady, nil, 0o600); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-server.Server.StopNotify():
		return errors.New("stopped by itself")
	case err := <-server.Err():
		return err
	}
}
