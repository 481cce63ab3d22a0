// Package cluster opens the Kubernetes cluster to work with: a devcluster, which it can start, or an existing cluster.
package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// requestTimeout is the timeout of a request about the version or identity of a cluster.
const requestTimeout = 15 * time.Second

// Target is a cluster and the access to it.
type Target struct {
	// Config accesses the cluster as the kubeconfig's user.
	Config *rest.Config
	// Raw is the kubeconfig, reduced to the context in use and with the contents of all referenced files inlined.
	Raw clientcmdapi.Config
	// Cluster is the name of the cluster in the kubeconfig.
	Cluster string
	// Context is the name of the context in use. Namespace is its namespace, by default "default".
	Context, Namespace string
	// CurrentContext is the current context of the kubeconfig file, which commands without --context use.
	CurrentContext string
	// Path is the kubeconfig file, or a list of files like $KUBECONFIG.
	Path string
	// Version is the Kubernetes version of the cluster.
	Version string

	file string // kubeconfig file that Load was called with, or "" for the usual loading rules
	uid  string // identifies the cluster; "" if the user is not allowed to read it
}

// Load reads a kubeconfig, selects a context and connects to the cluster. If file is empty, the usual loading rules apply
// ($KUBECONFIG, then ~/.kube/config). If contextName is empty, the current context is used.
func Load(ctx context.Context, file, contextName string) (*Target, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if file != "" {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find kubeconfig %s: %w", file, err)
		}
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: absolute}
	}
	path := rules.ExplicitPath
	if path == "" {
		path = strings.Join(rules.Precedence, string(filepath.ListSeparator))
	}
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	target := &Target{Path: path, CurrentContext: loaded.CurrentContext, file: rules.ExplicitPath}
	if err := target.selectContext(loaded, contextName); err != nil {
		return nil, err
	}
	if err := target.connect(ctx); err != nil {
		return nil, err
	}
	return target, nil
}

func (t *Target) selectContext(loaded *clientcmdapi.Config, contextName string) error {
	if contextName != "" {
		loaded.CurrentContext = contextName
	}
	if loaded.CurrentContext == "" {
		return fmt.Errorf("kubeconfig %s has no current context; name one with --context", t.Path)
	}
	if _, ok := loaded.Contexts[loaded.CurrentContext]; !ok {
		return fmt.Errorf("kubeconfig %s has no context %q; it has: %s", t.Path, loaded.CurrentContext, names(loaded))
	}
	if err := clientcmdapi.MinifyConfig(loaded); err != nil {
		return fmt.Errorf("read context %s of kubeconfig %s: %w", loaded.CurrentContext, t.Path, err)
	}
	if err := clientcmdapi.FlattenConfig(loaded); err != nil {
		return fmt.Errorf("read the files that kubeconfig %s refers to: %w", t.Path, err)
	}
	client := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{})
	config, err := client.ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", t.Path, err)
	}
	namespace, _, err := client.Namespace()
	if err != nil {
		return fmt.Errorf("read the namespace in kubeconfig %s: %w", t.Path, err)
	}
	config.UserAgent = "einmal-dev"
	config.QPS = -1
	t.Config, t.Raw, t.Context, t.Namespace = config, *loaded, loaded.CurrentContext, namespace
	t.Cluster = loaded.Contexts[t.Context].Cluster
	return nil
}

func names(config *clientcmdapi.Config) string {
	var all []string
	for name := range config.Contexts {
		all = append(all, name)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(sorted(all), ", ")
}

// connect requests the version and identity of the cluster.
func (t *Target) connect(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(timed(t.Config))
	if err != nil {
		return fmt.Errorf("create client for %s: %w", t.Config.Host, err)
	}
	answered := make(chan error, 1)
	go func() {
		version, err := client.ServerVersion()
		if err == nil {
			t.Version = version.GitVersion
			t.uid, err = clusterUID(ctx, t.Config)
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("reach the cluster at %s (context %s of %s): %w",
				t.Config.Host, t.Context, t.Path, err)
		}
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
