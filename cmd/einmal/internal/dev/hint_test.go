package dev

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

func TestClusterIsForeignIfNamedOrNotOnThisMachine(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		server  string
		want    bool
	}{
		"devcluster of a data directory":      {Options{Data: "d"}, "https://127.0.0.1:6443", false},
		"devcluster with a remote kubeconfig": {Options{}, "https://203.0.113.1:6443", true},
		"named by --kubeconfig":               {Options{Kubeconfig: "k"}, "https://127.0.0.1:6443", true},
		"named by --context":                  {Options{Context: "c"}, "https://127.0.0.1:6443", true},
	} {
		access := clusterAccess{options: c.options, target: &cluster.Target{Config: &rest.Config{Host: c.server}}}
		if got := access.foreign(); got != c.want {
			t.Errorf("%s: foreign() = %v, want %v", name, got, c.want)
		}
	}
}

func TestPrintedKubectlCommandsNameTheKubeconfig(t *testing.T) {
	for want, c := range map[string]struct {
		options Options
		path    string
	}{
		"'/my bin/einmal' kubectl --kubeconfig '/a b/kubeconfig'": {Options{Self: "/my bin/einmal"}, "/a b/kubeconfig"},
		"kubectl --kubeconfig /k --context 'the prod'":            {Options{Kubeconfig: "k"}, "/k"},
		"kubectl --kubeconfig /home/.kube/config --context 'the prod'": {
			Options{Context: "the prod"}, "/home/.kube/config",
		},
		"KUBECONFIG=/a:/b kubectl --context 'the prod'": {Options{Context: "the prod"}, "/a:/b"},
	} {
		access := clusterAccess{options: c.options, target: &cluster.Target{Path: c.path, Context: "the prod"}}
		if got := access.kubectl(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
