package dev

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// clusterAccess describes how the user reaches the cluster of a run.
type clusterAccess struct {
	options Options
	target  *cluster.Target
}

// foreign reports whether changing the cluster needs confirmation: the user named it, or its server is not on this
// machine.
func (a clusterAccess) foreign() bool { return a.options.existing() || !a.target.Loopback() }

// ctrlC returns a sentence about what Ctrl-C does.
func (a clusterAccess) ctrlC(ownCluster bool) string {
	const stops = "Ctrl-C stops the operator"
	switch {
	case ownCluster:
		return stops + " and the cluster"
	case a.options.CleanUp:
		return stops + " and deletes the objects that this run created; the cluster keeps running"
	case a.foreign():
		return stops + "; the cluster keeps running, and the applied objects stay in it"
	default:
		return stops + "; the devcluster keeps running"
	}
}

// kubectl returns the command line that reaches the cluster from another terminal in the same directory, regardless of
// the value of $KUBECONFIG there.
func (a clusterAccess) kubectl() string {
	if !a.options.existing() {
		return fmt.Sprintf("%s kubectl --kubeconfig %s", cluster.Quote(a.options.Self), cluster.Quote(a.target.Path))
	}
	environment, flags := a.named()
	return environment + "kubectl " + flags
}

// named returns the environment variables and flags with which a command line selects the cluster.
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

// printNextSteps prints a command that shows the operator's objects, and what Ctrl-C does.
func (s *session) printNextSteps(ownCluster bool) {
	get := "get " + strings.Join(s.kinds, ",")
	if len(s.kinds) == 0 {
		get = "get all"
	}
	s.dev.Printf("in another terminal:  %s %s", s.access().kubectl(), get)
	s.dev.Printf("source changes rebuild and restart the operator\n%s", s.access().ctrlC(ownCluster))
}
