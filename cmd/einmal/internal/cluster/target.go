// Package cluster starts and finds devclusters and opens them.
package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// requestTimeout is the timeout of the request for the version of a cluster.
const requestTimeout = 15 * time.Second

// Target is a devcluster and the access to it.
type Target struct {
	// Config accesses the cluster as the kubeconfig's user.
	Config *rest.Config
	// Raw is the kubeconfig, reduced to the current context and with the contents of all referenced files inlined.
	Raw clientcmdapi.Config
	// Namespace is the namespace of the current context, by default "default".
	Namespace string
	// Version is the Kubernetes version of the cluster.
	Version string
}

// Load reads the kubeconfig of a devcluster and connects to it. It returns an error if the kubeconfig leads to another
// server than that of the devcluster: the file may have been changed.
func Load(ctx context.Context, devcluster *Devcluster) (*Target, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: devcluster.Kubeconfig}
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	target := &Target{}
	if err := target.read(loaded); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", devcluster.Kubeconfig, err)
	}
	if err := target.check(devcluster); err != nil {
		return nil, err
	}
	if err := target.connect(ctx); err != nil {
		return nil, err
	}
	return target, nil
}

// read sets everything but the version from a kubeconfig.
func (t *Target) read(loaded *clientcmdapi.Config) error {
	if err := clientcmdapi.MinifyConfig(loaded); err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(loaded); err != nil {
		return err
	}
	client := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{})
	config, err := client.ClientConfig()
	if err != nil {
		return err
	}
	if t.Namespace, _, err = client.Namespace(); err != nil {
		return err
	}
	config.UserAgent = "einmal-dev"
	config.QPS = -1
	t.Config, t.Raw = config, *loaded
	return nil
}

// check returns an error unless requests go to the server of the devcluster and this server is on this machine.
func (t *Target) check(devcluster *Devcluster) error {
	remedy := fmt.Sprintf("remedy: run einmal dev again after: %s down --data %s; the next start writes the file again and keeps the data",
		Quote(devcluster.program), Quote(devcluster.data))
	switch {
	case t.Config.Host != devcluster.Server:
		return fmt.Errorf("check kubeconfig %s: its server must be that of the devcluster, %s, got %s\n%s",
			devcluster.Kubeconfig, devcluster.Server, t.Config.Host, remedy)
	case !onLoopback(t.Config.Host):
		return fmt.Errorf("check kubeconfig %s: its server must have a loopback address, got %s\n%s",
			devcluster.Kubeconfig, t.Config.Host, remedy)
	case t.Config.Proxy != nil:
		return fmt.Errorf("check kubeconfig %s: its server, %s, must be reached without a proxy-url\n%s",
			devcluster.Kubeconfig, t.Config.Host, remedy)
	}
	return nil
}

// onLoopback reports whether a server has a loopback address.
func onLoopback(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && net.ParseIP(parsed.Hostname()).IsLoopback()
}

// connect requests the version of the cluster.
func (t *Target) connect(ctx context.Context) error {
	limited := rest.CopyConfig(t.Config)
	limited.Timeout = requestTimeout
	client, err := discovery.NewDiscoveryClientForConfig(limited)
	if err != nil {
		return fmt.Errorf("create client for %s: %w", t.Config.Host, err)
	}
	answered := make(chan error, 1)
	go func() {
		version, err := client.ServerVersion()
		if err == nil {
			t.Version = version.GitVersion
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("reach the devcluster at %s: %w", t.Config.Host, err)
		}
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
