package einmaltest

import (
	"context"
	"slices"
	"strings"
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

// Cluster is a real control plane for a test: the program devcluster of this project, which the environment variable EINMAL_DEVCLUSTER names
// if it is not in bin. Cluster acts with administrator rights; operators get a ServiceAccount of their own.
type Cluster struct {
	client.Client
	cluster *cluster.Cluster
}

// StartCluster starts a control plane that ends with the test, also when the test is killed. The functions add the types
// that its client reads and writes beside the built-in ones, usually an API package's AddToScheme.
func StartCluster(t *testing.T, add ...func(*runtime.Scheme) error) *Cluster {
	t.Helper()
	return clusterOf(t, cluster.Start(t), add)
}

// SharedCluster returns the control plane whose kubeconfig the environment variable EINMAL_TEST_KUBECONFIG names. If it is not set,
// SharedCluster starts a control plane for this test alone, as StartCluster does.
//
// Tests of several packages use a shared control plane at the same time. A test must
//   - create its namespaced objects in namespaces that no other package uses, such as those of Namespace, or under names that no other
//     package uses;
//   - give the objects of cluster scope names that no other package uses;
//   - not run while another test uses the same CRDs, unless it runs no operator and looks only at its own objects;
//   - not read totals of the whole control plane, such as the metrics of the API server;
//   - delete what it has created: see DeleteAllAtEnd. CRDs, roles and ServiceAccounts that all tests of a package apply may stay.
//
// When the test ends, the programs that Run has started are stopped and the namespaces of Namespace are deleted. Other objects stay.
func SharedCluster(t *testing.T, add ...func(*runtime.Scheme) error) *Cluster {
	t.Helper()
	return clusterOf(t, cluster.Shared(t), add)
}

// clusterOf gives a control plane a client that knows more types.
func clusterOf(t *testing.T, on *cluster.Cluster, add []func(*runtime.Scheme) error) *Cluster {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientscheme.AddToScheme}, add...) {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(on.Config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{Client: api, cluster: on}
}

// Namespace creates a namespace whose name begins with the prefix, and returns its name. No other test has a namespace of this name. On a
// shared control plane, the namespace is deleted when the test ends.
func (c *Cluster) Namespace(t *testing.T, prefix string) string {
	t.Helper()
	return c.cluster.Namespace(t, prefix)
}

// DeleteAllAtEnd deletes all objects of a list's kind when the test ends, without their finalizers, and waits until they are gone. Call it before
// Run, so that the operator has stopped by then. It does not wait for dependents; delete those with a call before this one, since cleanups run
// in reverse order. On a control plane that is not shared, it does nothing.
func (c *Cluster) DeleteAllAtEnd(t *testing.T, list client.ObjectList, options ...client.ListOption) {
	t.Helper()
	c.cluster.DeleteAllAtEnd(t, c.Client, list, options...)
}

// Config acts with all rights.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.cluster.Config) }

// Kubectl runs kubectl with all rights and returns what it prints. A failure fails the test.
func (c *Cluster) Kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	return c.cluster.Kubectl(t, input, args...)
}

// ApplyFolders applies every manifest of folders, with kubectl, in the order in which they are given. The CRDs among them are served when it
// returns.
func (c *Cluster) ApplyFolders(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		applied := strings.Fields(c.Kubectl(t, "", "apply", "--server-side", "-o", "name", "-f", folder))
		definitions := slices.DeleteFunc(applied, func(name string) bool { return !strings.HasPrefix(name, "customresourcedefinition.") })
		if len(definitions) > 0 {
			c.Kubectl(t, "", append([]string{"wait", "--for=condition=Established"}, definitions...)...)
		}
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

// Eventually repeats an attempt until it succeeds; if it does not within five minutes, the test fails with the last error.
func Eventually(t *testing.T, what string, attempt func(ctx context.Context) error) {
	t.Helper()
	cluster.Eventually(t, what, attempt)
}
