package identity

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is longer than a run: a devcluster issues tokens with any lifetime.
const tokenLifetime = 365 * 24 * time.Hour

// WriteToken requests a token for the account and writes it to a file with mode 0600.
func WriteToken(ctx context.Context, config *rest.Config, account Account, file string) error {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create token client: %w", err)
	}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	response, err := client.ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("request a token: no ServiceAccount %s in the cluster: %w\n"+
			"remedy: add it to the operator's RBAC manifests", account, err)
	}
	if err != nil {
		return fmt.Errorf("request a token for ServiceAccount %s: %w", account, err)
	}
	return writePrivate(file, []byte(response.Status.Token))
}

// WriteKubeconfig writes a kubeconfig for the cluster of config, whose certificates must not be in files, to a file with
// mode 0600. Its only user authenticates as the account, with the token in tokenFile.
func WriteKubeconfig(file string, config *rest.Config, account Account, tokenFile string) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos["operator"] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	kubeconfig.Contexts["operator"] = &clientcmdapi.Context{
		Cluster: "cluster", AuthInfo: "operator", Namespace: account.Namespace,
	}
	kubeconfig.CurrentContext = "operator"
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return writePrivate(file, data)
}

// writePrivate replaces a file atomically and gives it mode 0600.
func writePrivate(file string, data []byte) error {
	temporary := file + ".new"
	err := os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
