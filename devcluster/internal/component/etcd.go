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

// EtcdSocket is the name of the socket that etcd listens on, relative to the data
// directory. A relative path stays below the length limit of socket paths even if
// the path of the data directory is long.
const EtcdSocket = "etcd.sock"

// EtcdReady is the name of an empty file, relative to the data directory, that is
// created when etcd is ready for clients.
const EtcdReady = "etcd.ready"

const (
	tickMs     = 20
	electionMs = 100
)

// runEtcd runs a single etcd member that stores its data in dir. It listens only on
// the Unix socket EtcdSocket in the working directory, so the permissions of that
// directory control access.
func runEtcd(ctx context.Context, dir string) error {
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = dir
	cfg.LogLevel = "info"
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Host: EtcdSocket}}
	// A single member needs no peer listener. The advertised addresses are
	// required but unused.
	cfg.ListenPeerUrls = nil
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A single member elects itself, so short election timeouts are safe.
	cfg.TickMs, cfg.ElectionMs = tickMs, electionMs

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
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
		return errors.New("stopped unexpectedly")
	case err := <-server.Err():
		return err
	}
}
