package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// kubeconfigOf returns the text of a kubeconfig. more are further fields of its cluster.
func kubeconfigOf(server, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: devcluster\n"+
		"clusters: [{name: devcluster, cluster: {server: %q%s}}]\n"+
		"contexts: [{name: devcluster, context: {cluster: devcluster, namespace: team}}]\n", server, more)
}

// find returns the devcluster that a program reports as running. Its kubeconfig contains a text.
func find(t *testing.T, server, kubeconfig string) *cluster.Devcluster {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	status := fmt.Sprintf(`echo '{"running":true,"ready":true,"pid":12,"kubeconfig":"%s/kubeconfig","server":%q}'`, dir, server)
	options := cluster.Options{Program: program(t, dir+"/devcluster", status), Data: dir}
	found, err := cluster.Find(t.Context(), newSpawner(t), options)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLoadReadsTheKubeconfigOfTheDevcluster(t *testing.T) {
	const own = "https://127.0.0.1:1"
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	target, err := cluster.Load(find(t, own, kubeconfigOf(own, "")))
	if err != nil {
		t.Fatal(err)
	}
	if target.Config.Host != own || target.Namespace != "team" {
		t.Errorf("host %s, namespace %s", target.Config.Host, target.Namespace)
	}
}

// The kubeconfig in the data directory is a file that "kubectl config" or an editor can change.
func TestLoadRefusesAnotherServer(t *testing.T) {
	const own = "https://127.0.0.1:1"
	for name, c := range map[string]struct {
		server, kubeconfig string
		want               string
	}{
		"another server on this machine":   {own, kubeconfigOf("https://127.0.0.1:2", ""), "its server must be that of the devcluster, " + own + ", got https://127.0.0.1:2"},
		"another server":                   {own, kubeconfigOf("https://203.0.113.1:6443", ""), own + ", got https://203.0.113.1:6443"},
		"a devcluster on another machine":  {"https://203.0.113.1:6443", kubeconfigOf("https://203.0.113.1:6443", ""), "must have a loopback address, got https://203.0.113.1:6443"},
		"a name":                           {"https://127.0.0.1.example.com", kubeconfigOf("https://127.0.0.1.example.com", ""), "must have a loopback address"},
		"a server behind user information": {"https://127.0.0.1@example.com", kubeconfigOf("https://127.0.0.1@example.com", ""), "must have a loopback address"},
		"a proxy":                          {own, kubeconfigOf(own, ", proxy-url: \"http://127.0.0.1:2\""), own + ", must be reached without a proxy-url"},
	} {
		devcluster := find(t, c.server, c.kubeconfig)
		_, err := cluster.Load(devcluster)
		for _, part := range []string{c.want, devcluster.Kubeconfig, "remedy: ", "down --data " + filepath.Dir(devcluster.Kubeconfig)} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v does not contain %q", name, err, part)
			}
		}
	}
}

func TestLoadErrorsNameTheKubeconfig(t *testing.T) {
	const own = "https://127.0.0.1:1"
	for text, want := range map[string]string{
		"":              "no configuration",
		"apiVersion: [": "yaml",
	} {
		devcluster := find(t, own, text)
		_, err := cluster.Load(devcluster)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), devcluster.Kubeconfig) {
			t.Errorf("%q: error %v does not contain %q or the name of the file", text, err, want)
		}
	}
}
