package einmaltest

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// Cluster is a real control plane of its own for a test: the program devcluster of this project, which the environment
// variable EINMAL_DEVCLUSTER names where it is not in bin. It is seen here by a user with all rights; operators get a
// ServiceAccount of their own.
type Cluster struct {
	client.Client
	cluster *cluster.Cluster
}

// StartCluster starts a control plane that ends with the test, also when the test is killed. The functions add the types
// that its client reads and writes beside the built-in ones, usually an API package's AddToScheme.
func StartCluster(t *testing.T, add ...func(*runtime.Scheme) error) *Cluster {
	t.Helper()
	c := &Cluster{cluster: cluster.Start(t)}
	types := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientscheme.AddToScheme}, add...) {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.Client, err = client.New(c.cluster.Config, client.Options{Scheme: types}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Config acts with all rights.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.cluster.Config) }

// Kubectl runs kubectl with all rights and returns what it prints. A failure fails the test.
func (c *Cluster) Kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	return c.cluster.Kubectl(t, input, args...)
}

// ApplyFolders applies every manifest of folders, with kubectl, in the order in which they are given. Definitions are
// served when it returns.
func (c *Cluster) ApplyFolders(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		c.Kubectl(t, "", "apply", "--server-side", "-f", folder)
		c.Kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all")
	}
}

// ServiceAccount writes a kubeconfig that acts as a ServiceAccount which is there, with no more rights than it has, and
// returns the file's path.
func (c *Cluster) ServiceAccount(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatalf("a token for the account %s/%s: %v", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.cluster.Config)
	config.BearerToken = token.Status.Token
	return cluster.KubeconfigOf(t, config)
}

// Eventually repeats an attempt until it succeeds; if it does not within a minute, the test fails with the last error.
func Eventually(t *testing.T, what string, attempt func(ctx context.Context) error) {
	t.Helper()
	cluster.Eventually(t, what, attempt)
}
