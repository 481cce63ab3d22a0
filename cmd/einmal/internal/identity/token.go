package identity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// tokenLifetime is the requested lifetime. The API server may issue tokens with another one.
	tokenLifetime = time.Hour
	// checkEvery is how often to check whether the token must be renewed. The check compares wall-clock times, because a
	// timer does not advance while a laptop sleeps.
	checkEvery = 20 * time.Second
)

// Tokens keeps a valid token of an account in a file.
type Tokens struct {
	client  corev1.ServiceAccountsGetter
	account Account
	file    string
	logf    func(format string, args ...any)

	mu  sync.Mutex
	due time.Time
}

// NewTokens returns a Tokens that writes to file and reports failures of Keep to logf.
func NewTokens(client corev1.ServiceAccountsGetter, account Account, file string, logf func(string, ...any)) *Tokens {
	return &Tokens{client: client, account: account, file: file, logf: logf}
}

// Renew requests a new token and writes it to the file.
func (t *Tokens) Renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	requested := time.Now()
	response, err := t.client.ServiceAccounts(t.account.Namespace).
		CreateToken(ctx, t.account.Name, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("request a token: no ServiceAccount %s in the cluster: %w\n"+
			"remedy: add it to the operator's RBAC manifests", t.account, err)
	}
	if err != nil {
		return fmt.Errorf("request a token for ServiceAccount %s: %w", t.account, err)
	}
	if err := writePrivate(t.file, []byte(response.Status.Token)); err != nil {
		return err
	}
	t.due = renewAt(requested, response.Status.ExpirationTimestamp.Time)
	return nil
}

// renewAt returns the time to renew a token: when a fifth of its lifetime is left.
func renewAt(now, expires time.Time) time.Time {
	return now.Add(expires.Sub(now) * 4 / 5).Round(0)
}

// Keep renews the token before it expires, until ctx is done.
func (t *Tokens) Keep(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !t.isDue(time.Now()) {
				continue
			}
			err := t.Renew(ctx)
			switch {
			case err != nil && ctx.Err() == nil && !failing:
				t.logf("%v\nretrying every %s", err, checkEvery)
			case err == nil && failing:
				t.logf("the operator's token was renewed after earlier failures")
			}
			failing = err != nil
		}
	}
}

func (t *Tokens) isDue(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Round(0).Before(t.due)
}

// Kubeconfig returns a kubeconfig for the current cluster of raw, whose files must be inlined. Its only user
// authenticates as the account, with the token in tokenFile.
func Kubeconfig(raw clientcmdapi.Config, account Account, tokenFile string) ([]byte, error) {
	current, ok := raw.Contexts[raw.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("kubeconfig has no context %q", raw.CurrentContext)
	}
	cluster, ok := raw.Clusters[current.Cluster]
	if !ok {
		return nil, fmt.Errorf("kubeconfig has no cluster %q", current.Cluster)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = cluster.DeepCopy()
	config.AuthInfos["operator"] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	config.Contexts["operator"] = &clientcmdapi.Context{
		Cluster: "cluster", AuthInfo: "operator", Namespace: account.Namespace,
	}
	config.CurrentContext = "operator"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return data, nil
}

// WriteKubeconfig writes the result of Kubeconfig to a file with mode 0600.
func WriteKubeconfig(file string, raw clientcmdapi.Config, account Account, tokenFile string) error {
	data, err := Kubeconfig(raw, account, tokenFile)
	if err != nil {
		return err
	}
	return writePrivate(file, data)
}

// writePrivate replaces a file atomically and gives it mode 0600.
func writePrivate(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(data)
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
