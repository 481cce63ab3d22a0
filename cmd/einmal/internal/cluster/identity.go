package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// identityNamespace exists in every cluster, and its UID never changes.
const identityNamespace = "kube-system"

// MovedError reports that the server's address leads to another cluster than at first.
type MovedError struct {
	Host string
}

// Error names the server and what to do.
func (e *MovedError) Error() string {
	return fmt.Sprintf("the server at %s belongs to another cluster now than when einmal dev started\n"+
		"remedy: start einmal dev again", e.Host)
}

// ID identifies the cluster, whatever the kubeconfig calls it. Two kubeconfigs for one cluster give the same ID unless
// their users may not read the namespace kube-system.
func (t *Target) ID() string {
	if t.uid != "" {
		return t.uid
	}
	return t.Config.Host + "\n" + string(t.Config.CAData)
}

// Loopback reports whether the API server is on this machine: its address is a loopback address and no proxy is set.
func (t *Target) Loopback() bool {
	return onLoopback(t.Config.Host) && t.Config.Proxy == nil
}

func onLoopback(server string) bool {
	parsed, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := parsed.Hostname()
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Server returns the server of the current context of a kubeconfig (or of several, as $KUBECONFIG lists them), and
// reports whether it is on this machine.
func Server(paths string) (server string, loopback bool, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(paths)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return "", false, fmt.Errorf("read kubeconfig %s: %w", paths, err)
	}
	target := Target{Config: config}
	return config.Host, target.Loopback(), nil
}

// Verify returns *MovedError if the server belongs to another cluster than when Load asked it. Other failures are not
// reported: a server that does not answer cannot be changed either.
func (t *Target) Verify(ctx context.Context) error {
	uid, err := clusterUID(ctx, t.Config)
	if err == nil && uid != "" && t.uid != "" && uid != t.uid {
		return &MovedError{Host: t.Config.Host}
	}
	return ctx.Err()
}

// Namespaces says in words how many namespaces the cluster has.
func (t *Target) Namespaces(ctx context.Context) string {
	client, err := corev1.NewForConfig(timed(t.Config))
	if err != nil {
		return "unknown: " + err.Error()
	}
	list, err := client.Namespaces().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return "unknown: this user may not list them"
	case err != nil:
		return "unknown: " + err.Error()
	}
	return fmt.Sprint(len(list.Items))
}

// clusterUID returns the UID of the namespace kube-system, or "" if the user may not read it.
func clusterUID(ctx context.Context, config *rest.Config) (string, error) {
	client, err := corev1.NewForConfig(timed(config))
	if err != nil {
		return "", fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	namespace, err := client.Namespaces().Get(ctx, identityNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("read the namespace %s: %w", identityNamespace, err)
	}
	return string(namespace.UID), nil
}

// timed returns the config with a limit for each request.
func timed(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.Timeout = answerTimeout
	return limited
}
