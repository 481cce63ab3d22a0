package component

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// EtcdSocket is the name of the socket that etcd listens on, relative to the
// data directory. A relative name keeps within the limit for socket paths,
// however deep the data directory is.
const EtcdSocket = "etcd.sock"

// runEtcd runs a single etcd member that keeps its data in dir and listens on
// the unix socket EtcdSocket in the working directory alone. It has no port, so
// the permissions of the directory decide who reaches it.
func runEtcd(ctx context.Context, dir string) error {
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = dir
	cfg.LogLevel = "info"
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Host: EtcdSocket}}
	// A single member needs no listener for peers. What it advertises has to
	// look like an address, but nobody listens there and nobody asks for it.
	cfg.ListenPeerUrls = nil
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = false

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	select {
	case <-ctx.Done():
		server.Close()
		return nil
	case <-server.Server.StopNotify():
		return errors.New("stopped by itself")
	case err := <-server.Err():
		return err
	}
}
