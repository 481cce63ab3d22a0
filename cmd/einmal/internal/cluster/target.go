// Package cluster finds the Kubernetes cluster to work with: a devcluster that it starts, or one that is there.
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

// answerTimeout is how long a cluster has to answer the question for its version.
const answerTimeout = 15 * time.Second

// Target is a cluster and the access to it.
type Target struct {
	// Config reaches the cluster with the rights of the kubeconfig's user.
	Config *rest.Config
	// Raw is the kubeconfig cut down to the one context in use, with all files it names read in.
	Raw clientcmdapi.Config
	// Cluster is the name that the kubeconfig gives to the cluster.
	Cluster string
	// Context is the name of the context in use, Namespace its namespace ("default" if it has none).
	Context, Namespace string
	// Path is the kubeconfig file, or several as $KUBECONFIG lists them.
	Path string
	// Version is the cluster's version.
	Version string

	uid string // of the cluster; "" if the user may not read it
}

// Load reads a kubeconfig and picks a context. With no file, the usual loading rules apply ($KUBECONFIG, then
// ~/.kube/config); with no context name, the file's current context is meant. The cluster must answer.
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
	target := &Target{Path: path}
	if err := target.choose(loaded, contextName); err != nil {
		return nil, err
	}
	if err := target.ask(ctx); err != nil {
		return nil, err
	}
	return target, nil
}

func (t *Target) choose(loaded *clientcmdapi.Config, contextName string) error {
	if contextName != "" {
		loaded.CurrentContext = contextName
	}
	if loaded.CurrentContext == "" {
		return fmt.Errorf("kubeconfig %s has no current context: name one with --context", t.Path)
	}
	if _, ok := loaded.Contexts[loaded.CurrentContext]; !ok {
		return fmt.Errorf("kubeconfig %s has no context %q; it has: %s", t.Path, loaded.CurrentContext, names(loaded))
	}
	if err := clientcmdapi.MinifyConfig(loaded); err != nil {
		return fmt.Errorf("read context %s of kubeconfig %s: %w", loaded.CurrentContext, t.Path, err)
	}
	if err := clientcmdapi.FlattenConfig(loaded); err != nil {
		return fmt.Errorf("read the files that kubeconfig %s names: %w", t.Path, err)
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

// ask finds out whether the cluster is there, and which one it is.
func (t *Target) ask(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(timed(t.Config))
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", t.Config.Host, err)
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
			return fmt.Errorf("the cluster at %s (context %s of %s) does not answer: %w",
				t.Config.Host, t.Context, t.Path, err)
		}
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
