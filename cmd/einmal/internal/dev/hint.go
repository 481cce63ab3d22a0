package dev

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// clusterAccess is how the user reaches the cluster of a run.
type clusterAccess struct {
	options Options
	target  *cluster.Target
}

// foreign reports whether the cluster is one to ask about before it is changed: the user named it, or its server is not
// on this machine.
func (a clusterAccess) foreign() bool { return a.options.existing() || !a.target.Loopback() }

// ctrlC says what Ctrl-C does.
func (a clusterAccess) ctrlC(ownCluster bool) string {
	const stops = "Ctrl-C stops the operator"
	switch {
	case ownCluster:
		return stops + " and the cluster"
	case a.options.CleanUp:
		return stops + " and removes what this run created; the cluster runs on"
	case a.foreign():
		return stops + "; the cluster runs on, and what was applied stays there"
	default:
		return stops + "; the devcluster runs on"
	}
}

// kubectl returns the command line that reaches the cluster from another terminal in the same directory, whatever
// $KUBECONFIG says there.
func (a clusterAccess) kubectl() string {
	if !a.options.existing() {
		return fmt.Sprintf("%s kubectl --kubeconfig %s", cluster.Quote(a.options.Self), cluster.Quote(a.target.Path))
	}
	environment, flags := a.named()
	return environment + "kubectl " + flags
}

// named returns how a command line names the cluster: by environment variables before it and by flags after it.
func (a clusterAccess) named() (environment, flags string) {
	path := cluster.Quote(a.target.Path)
	flags = "--context " + cluster.Quote(a.target.Context)
	if len(filepath.SplitList(a.target.Path)) > 1 && a.options.Kubeconfig == "" {
		return "KUBECONFIG=" + path + " ", flags
	}
	return "", "--kubeconfig " + path + " " + flags
}

// access returns how the user reaches the cluster.
func (s *session) access() clusterAccess { return clusterAccess{options: s.options, target: s.target} }

// sayHowToLook says what a person can do now, and what Ctrl-C does.
func (s *session) sayHowToLook(ownCluster bool) {
	get := "get " + strings.Join(s.kinds, ",")
	if len(s.kinds) == 0 {
		get = "get all"
	}
	s.dev.Sayf("in another terminal:  %s %s", s.access().kubectl(), get)
	s.dev.Sayf("a change of the sources rebuilds and restarts the operator\n%s", s.access().ctrlC(ownCluster))
}
