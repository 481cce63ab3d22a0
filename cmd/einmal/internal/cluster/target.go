// Package cluster starts and finds devclusters and opens them.
package cluster

import (
	"fmt"
	"net"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Target is the access to a devcluster.
type Target struct {
	// Config accesses the cluster as the kubeconfig's user. Its certificates are not in files.
	Config *rest.Config
	// Namespace is the namespace of the current context, by default "default".
	Namespace string
}

// Load reads the kubeconfig of a devcluster. It returns an error if the kubeconfig leads to another server than that of the
// devcluster: the file may have been changed.
func Load(devcluster *Devcluster) (*Target, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: devcluster.Kubeconfig}
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	target := &Target{}
	kubeconfig := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{})
	if target.Config, err = kubeconfig.ClientConfig(); err == nil {
		target.Namespace, _, err = kubeconfig.Namespace()
	}
	if err == nil {
		err = rest.LoadTLSFiles(target.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", devcluster.Kubeconfig, err)
	}
	target.Config.UserAgent = "einmal-dev"
	target.Config.QPS = -1
	return target, target.check(devcluster)
}

// check returns an error unless requests go to the server of the devcluster and this server is on this machine.
func (t *Target) check(devcluster *Devcluster) error {
	remedy := fmt.Sprintf("remedy: run einmal dev again after: %s down --data %s; the next start writes the file again and keeps the data",
		Quote(devcluster.options.Program), Quote(devcluster.options.Data))
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
