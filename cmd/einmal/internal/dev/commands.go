package dev

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// printCommands prints the commands that delete the objects that this run created. The commands name the kubeconfig and
// the context, so it returns an error instead if these lead to another cluster by now.
func (s *cleanup) printCommands(ctx context.Context) error {
	if len(s.created()) == 0 {
		return nil
	}
	if err := s.target.Recheck(ctx); err != nil {
		return s.undetermined(err)
	}
	var commands []string
	if s.uninstalls {
		commands = append(commands, s.uninstallCommand())
	} else {
		commands = append(commands, s.releaseCommands(ctx)...)
	}
	for _, one := range s.created() {
		commands = append(commands, s.kubectl("delete --ignore-not-found", one))
	}
	s.dev.Printf("objects created by this run stay in the cluster %s (%s); to delete them:", s.target.Cluster, s.target.Config.Host)
	for _, line := range commands {
		s.screen.Result(line)
	}
	return nil
}

// releaseCommands returns the commands that remove the operator's finalizers from the objects that the other commands
// delete. The operator no longer runs, so the deletion would wait for ever.
func (s *cleanup) releaseCommands(ctx context.Context) []string {
	kinds := slices.Concat(s.trace.Created(), s.trace.Changed())
	kinds = slices.DeleteFunc(kinds, func(one apply.Applied) bool { return !apply.HasDefinition([]apply.Applied{one}) })
	var commands []string
	for _, one := range s.apply.Held(ctx, s.created(), kinds, filepath.Base(s.runDir.Binary)) {
		s.dev.Printf("%s has the finalizer %s of the operator, which has stopped: a kubectl patch below removes it first,\n"+
			"and the operator's delete handlers do not run for this object", one.Name(), strings.Join(one.Finalizers, ", "))
		commands = append(commands, s.kubectl("patch --type json --patch "+cluster.Quote(one.Patch), one.Applied))
	}
	return commands
}

// undetermined returns the error for a run whose commands cannot be printed. It names the objects, so that the user can
// delete them later.
func (s *cleanup) undetermined(cause error) error {
	var names []string
	for _, one := range s.created() {
		names = append(names, one.Name())
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("determine the commands that delete the objects created by this run: %w\n"+
		"these objects stay in the cluster %s (%s): %s", cause, s.target.Cluster, s.target.Config.Host, strings.Join(names, ", "))
}

// kubectl returns a kubectl command for an object.
func (s *cleanup) kubectl(verb string, one apply.Applied) string {
	environment, flags := s.access().named()
	line := fmt.Sprintf("%skubectl %s %s %s %s", environment, flags, verb, one.Type(), cluster.Quote(one.GetName()))
	if one.GetNamespace() != "" {
		line += " --namespace " + cluster.Quote(one.GetNamespace())
	}
	return line
}

// uninstallCommand returns the command that runs the operator's uninstall verb.
func (s *cleanup) uninstallCommand() string {
	environment, flags := s.access().named()
	return fmt.Sprintf("(cd %s && %sgo run . uninstall %s --state-namespace %s)",
		cluster.Quote(s.dir), environment, flags, cluster.Quote(s.account.Namespace))
}
