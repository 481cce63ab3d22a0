package cli

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The state namespace is the one that the context of the kubeconfig names, also if that is default.
func TestTheContextOfTheKubeconfigNamesTheStateNamespace(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	for name, namespace := range map[string]string{"plain": "", "default": "default", "system": "hello-system"} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "c", Namespace: namespace}
	}
	config.CurrentContext = "system"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "", "default": "default", "system": "hello-system", "": "hello-system"} {
		flags := connectionFlags{kubeconfig: file, context: name}
		if _, got, err := flags.config(); err != nil || got != want {
			t.Errorf("context %q: namespace %q, %v, want %q", name, got, err, want)
		}
	}
}
