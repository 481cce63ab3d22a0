package cluster

import (
	"context"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// accountNamespace is where the accounts of operators under test live.
const accountNamespace = "default"

// Account makes a ServiceAccount with just these rights in the whole cluster, and returns a configuration that acts
// as it. On a shared control plane, the account is deleted when the test ends.
func (c *Cluster) Account(t *testing.T, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: accountNamespace}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: accountNamespace}},
	}
	token := &authenticationv1.TokenRequest{}
	for what, make := range map[string]func(context.Context) error{
		"role":    func(ctx context.Context) error { return c.Create(ctx, role) },
		"binding": func(ctx context.Context) error { return c.Create(ctx, binding) },
		"account": func(ctx context.Context) error {
			if err := c.Create(ctx, account); err != nil {
				return err
			}
			return c.SubResource("token").Create(ctx, account, token)
		},
	} {
		if err := make(t.Context()); err != nil {
			t.Fatalf("make the %s %s: %v", what, name, err)
		}
	}
	if c.shared {
		c.deleteAtEnd(t, binding, role, account)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token.Status.Token
	return config
}

// KubeconfigOf writes a kubeconfig for processes that act as an account, and returns its path.
func KubeconfigOf(t *testing.T, account *rest.Config) string {
	t.Helper()
	const name = "test"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: account.Host, CertificateAuthorityData: account.CAData, CertificateAuthority: account.CAFile,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: account.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
