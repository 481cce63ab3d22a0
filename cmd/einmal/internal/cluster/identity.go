package cluster

import (
	"context"
	"errors"
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

// identityNamespace exists in every cluster and its UID never changes.
const identityNamespace = "kube-system"

// MovedError reports that the server's address now leads to a different cluster.
type MovedError struct {
	Host string
}

// Error names the server and the remedy.
func (e *MovedError) Error() string {
	return fmt.Sprintf("the server at %s now belongs to a different cluster than when einmal dev started\n"+
		"remedy: restart einmal dev", e.Host)
}

// ID identifies the cluster, independently of its name in a kubeconfig. Two kubeconfigs for the same cluster yield the
// same ID unless their users are not allowed to read the namespace kube-system.
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

// Server returns the server of the current context in a kubeconfig and reports whether it is on this machine. paths may
// list several files, like $KUBECONFIG.
func Server(paths string) (server string, loopback bool, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(paths)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return "", false, fmt.Errorf("read kubeconfig %s: %w", paths, err)
	}
	target := Target{Config: config}
	return config.Host, target.Loopback(), nil
}

// RedirectedError reports that the context of the kubeconfig now leads to a different cluster.
type RedirectedError struct {
	Context, Path, Host string
}

// Error names the context and the server that it leads to.
func (e *RedirectedError) Error() string {
	return fmt.Sprintf("the context %s of kubeconfig %s now leads to a different cluster than when einmal dev started: %s",
		e.Context, e.Path, e.Host)
}

// Verify returns *MovedError if the server belongs to a different cluster than when Load was called. It ignores other
// failures because a server that does not respond cannot be changed either.
func (t *Target) Verify(ctx context.Context) error {
	if moved, ok := errors.AsType[*MovedError](t.Probe(ctx)); ok {
		return moved
	}
	return ctx.Err()
}

// Probe returns an error if the server does not answer, and *MovedError if it belongs to a different cluster than when Load
// was called. A server that rejects the request answers.
func (t *Target) Probe(ctx context.Context) error {
	uid, err := clusterUID(ctx, t.Config)
	var rejected apierrors.APIStatus
	switch {
	case errors.As(err, &rejected):
		return nil
	case err != nil:
		return err
	case uid != "" && t.uid != "" && uid != t.uid:
		return &MovedError{Host: t.Config.Host}
	}
	return nil
}

// Recheck reads the kubeconfig again. It returns *RedirectedError if the context leads to a different cluster than when
// Load was called, so that commands which name the context would change that cluster.
func (t *Target) Recheck(ctx context.Context) error {
	now, err := Load(ctx, t.file, t.Context)
	if err != nil {
		return err
	}
	if now.ID() != t.ID() {
		return &RedirectedError{Context: t.Context, Path: t.Path, Host: now.Config.Host}
	}
	return nil
}

// Namespaces returns the number of namespaces in the cluster, or a text that says why it is unknown.
func (t *Target) Namespaces(ctx context.Context) string {
	client, err := corev1.NewForConfig(timed(t.Config))
	if err != nil {
		return "unknown: " + err.Error()
	}
	list, err := client.Namespaces().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return "unknown: this user is not allowed to list them"
	case err != nil:
		return "unknown: " + err.Error()
	}
	return fmt.Sprint(len(list.Items))
}

// clusterUID returns the UID of the namespace kube-system, or "" if the user is not allowed to read it.
func clusterUID(ctx context.Context, config *rest.Config) (string, error) {
	client, err := corev1.NewForConfig(timed(config))
	if err != nil {
		return "", fmt.Errorf("create client for %s: %w", config.Host, err)
	}
	namespace, err := client.Namespaces().Get(ctx, identityNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("get namespace %s: %w", identityNamespace, err)
	}
	return string(namespace.UID), nil
}

// timed returns a copy of the config with a timeout for each request.
func timed(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.Timeout = requestTimeout
	return limited
}
