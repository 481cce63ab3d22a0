package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

// cleanup is the end of a run: it removes what the run created, or says how to.
type cleanup struct {
	*session

	uninstalls bool // the operator's own verb removes what the operator wrote
}

// limit returns a context for work after the end of a run, and until everything is to end at once.
func (s *cleanup) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanUpTimeout,
		fmt.Errorf("it took longer than %s", cleanUpTimeout))
	go func() {
		select {
		case <-s.options.Again:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// removeExtras removes what --apply created, while the operator still runs and can handle the deletion. What it cannot
// remove is left for the time after the operator's end.
func (s *cleanup) removeExtras(ctx context.Context) {
	if !s.options.CleanUp || len(s.extraTrace.Created()) == 0 {
		return
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	err := s.target.Verify(ctx)
	if err == nil {
		err = s.remove(ctx, s.extraTrace.Created())
	}
	if err != nil {
		s.dev.Sayf("%v", err)
	}
}

// leave removes what this run created in the cluster, if --clean-up asks for that, or else prints the commands that do so
// in a foreign cluster. The operator has stopped.
func (s *cleanup) leave(ctx context.Context) error {
	if !s.options.CleanUp && !s.access().foreign() || s.nothingApplied() {
		return nil
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	s.sayChanged()
	s.uninstalls = s.canUninstall(ctx)
	if !s.options.CleanUp {
		s.sayCommands()
		return nil
	}
	if err := s.removeAll(ctx); err != nil {
		s.sayCommands()
		return fmt.Errorf("remove what this run created in the cluster %s: %w", s.target.Cluster, err)
	}
	return nil
}

// removeAll removes what the operator wrote, if its own verb does that, and what was applied for it.
func (s *cleanup) removeAll(ctx context.Context) error {
	if err := s.target.Verify(ctx); err != nil {
		return err
	}
	var err error
	if s.uninstalls {
		err = s.uninstall(ctx)
	}
	return errors.Join(err, s.remove(ctx, s.created()))
}

// created returns what this run created, in the order in which to remove it.
func (s *cleanup) created() []apply.Applied {
	return slices.Concat(s.extraTrace.Created(), s.trace.Created())
}

func (s *cleanup) nothingApplied() bool {
	return len(s.created())+len(s.extraTrace.Changed())+len(s.trace.Changed()) == 0
}

func (s *cleanup) remove(ctx context.Context, objects []apply.Applied) error {
	return s.apply.Remove(ctx, objects, func(one apply.Applied) { s.dev.Sayf("removed %s", one.Name()) })
}

// sayChanged names the objects that were there before this run. They are not removed: others may need them.
func (s *cleanup) sayChanged() {
	var names []string
	for _, one := range slices.Concat(s.extraTrace.Changed(), s.trace.Changed()) {
		names = append(names, one.Name())
	}
	if len(names) > 0 {
		s.dev.Sayf("these objects existed before this run, which may have changed them; they stay: %s", strings.Join(names, ", "))
	}
}

// sayCommands prints the commands that remove what this run created.
func (s *cleanup) sayCommands() {
	var commands []string
	environment, flags := s.access().named()
	command := func(one apply.Applied) {
		line := fmt.Sprintf("%skubectl %s delete --ignore-not-found %s %s", environment, flags, one.Type(), cluster.Quote(one.GetName()))
		if one.GetNamespace() != "" {
			line += " --namespace " + cluster.Quote(one.GetNamespace())
		}
		commands = append(commands, line)
	}
	if s.uninstalls {
		commands = append(commands, fmt.Sprintf("(cd %s && %sgo run . uninstall %s --state-namespace %s)",
			cluster.Quote(s.dir), environment, flags, cluster.Quote(s.account.Namespace)))
	}
	for _, one := range s.created() {
		command(one)
	}
	if len(commands) == 0 {
		return
	}
	s.dev.Sayf("what this run created stays in the cluster %s (%s). These commands remove it:", s.target.Cluster, s.target.Config.Host)
	for _, line := range commands {
		s.screen.Result(line)
	}
}

// canUninstall reports whether the operator's own verb may remove its finalizers and records. It removes those of every
// object, so this run must have created the operator's kinds. Operators of other frameworks do not have the verb.
func (s *cleanup) canUninstall(ctx context.Context) bool {
	if len(s.kinds) == 0 || apply.HasDefinition(s.trace.Changed()) || !apply.HasDefinition(s.trace.Created()) {
		return false
	}
	code, err := s.starter.Run(ctx, guard.Command{
		Args: []string{s.place.Binary, "uninstall", "-h"}, Env: s.environment(), Stdout: io.Discard, Stderr: io.Discard,
	})
	return err == nil && code == 0
}

// uninstall runs the operator's verb with the rights of the user, in the cluster that this run began with.
func (s *cleanup) uninstall(ctx context.Context) error {
	if err := clientcmd.WriteToFile(s.target.Raw, s.place.Admin); err != nil {
		return fmt.Errorf("write a kubeconfig for the operator's uninstall: %w", err)
	}
	screen := s.screen.Stream("operator", operatorColour)
	defer func() { _ = screen.Close() }()
	args := []string{s.place.Binary, "uninstall", "--kubeconfig", s.place.Admin, "--state-namespace", s.account.Namespace}
	code, err := s.starter.Run(ctx, guard.Command{Args: args, Env: s.environment(), Stdout: screen, Stderr: screen})
	if err == nil && code != 0 {
		err = fmt.Errorf("the operator's uninstall failed (%s); its last lines, above, say why", guard.Describe(code))
	}
	return err
}
