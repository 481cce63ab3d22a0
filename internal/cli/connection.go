package cli

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // Kubeconfigs with an auth provider work as with kubectl.
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connectionFlags are the flags that name the API server and the namespace of the operator's own objects.
type connectionFlags struct {
	kubeconfig, context string
	stateNamespace      string
	namespaces          namespaceFlag
}

func (f *connectionFlags) declareServer(set *flag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file`; the default is $KUBECONFIG, then the pod's own account, then ~/.kube/config")
	set.StringVar(&f.context, "context", "", "`name` of the kubeconfig's context to use")
}

func (*connectionFlags) own(string) bool { return false }

func (f *connectionFlags) validate() error {
	if f.stateNamespace != "" {
		return checkNamespace("state-namespace", f.stateNamespace)
	}
	return nil
}

// connect finds the API server and the namespace of the operator's own objects.
func (op *Operator) connect(flags *connectionFlags) (*rest.Config, error) {
	config, namespace, err := flags.config()
	if err != nil {
		return nil, err
	}
	op.Settings.Home = cmp.Or(flags.stateNamespace, op.Settings.Home, namespace)
	return config, nil
}

// config finds the API server: what the flags name, else $KUBECONFIG, else the pod's own account, else ~/.kube/config.
// It also returns the namespace that the kubeconfig's context names, or "".
func (f *connectionFlags) config() (*rest.Config, string, error) {
	if f.kubeconfig == "" && f.context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, "", nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	if err := f.checkContext(loading); err != nil {
		return nil, "", err
	}
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the API server: %w; name a kubeconfig with --kubeconfig", err)
	}
	raw, err := loading.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace := ""
	if used, ok := raw.Contexts[cmp.Or(f.context, raw.CurrentContext)]; ok {
		namespace = used.Namespace
	}
	return config, namespace, nil
}

// checkContext returns an error that lists the contexts if the kubeconfig does not have the one of the flag.
func (f *connectionFlags) checkContext(loading clientcmd.ClientConfig) error {
	if f.context == "" {
		return nil
	}
	raw, err := loading.RawConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if _, ok := raw.Contexts[f.context]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(raw.Contexts))
	if len(names) == 0 {
		return fmt.Errorf("context %q does not exist: there is no kubeconfig with contexts; name one with --kubeconfig", f.context)
	}
	return fmt.Errorf("context %q does not exist in the kubeconfig; choose one with --context: %s", f.context, strings.Join(names, ", "))
}
