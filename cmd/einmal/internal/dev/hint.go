package dev

import (
	"path/filepath"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// kubectl returns the command line that reaches the devcluster from any directory.
func (s *session) kubectl() string {
	self := s.options.Self
	if strings.ContainsRune(self, filepath.Separator) { // else it was found on the PATH
		if absolute, err := filepath.Abs(self); err == nil {
			self = absolute
		}
	}
	line := cluster.Quote(self) + " kubectl --data " + cluster.Quote(s.data)
	if program := s.options.Devcluster; program != "" {
		if absolute, err := filepath.Abs(program); err == nil {
			program = absolute
		}
		line = cluster.ProgramVariable + "=" + cluster.Quote(program) + " " + line
	}
	return line
}

// printNextSteps prints a command that shows the operator's objects, and what Ctrl-C does.
func (s *session) printNextSteps(devcluster *cluster.Devcluster) {
	get := "get " + strings.Join(s.kinds, ",")
	if len(s.kinds) == 0 {
		get = "get all"
	}
	ctrlC := "Ctrl-C stops the operator; the devcluster keeps running"
	if devcluster.Started() {
		ctrlC = "Ctrl-C stops the operator and the cluster"
	}
	s.dev.Printf("in another terminal:  %s %s", s.kubectl(), get)
	s.dev.Printf("source changes rebuild and restart the operator\n%s", ctrlC)
}
