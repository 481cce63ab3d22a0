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
	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

// cleanup ends a run: it deletes the objects that the run created, or prints the commands for that.
type cleanup struct {
	*session

	uninstalls bool // run the operator's uninstall command, which removes its finalizers and records
}

// limit returns a context for clean-up: ctx without its cancellation, with a timeout, canceled by a forced stop.
func (s *cleanup) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanUpTimeout,
		fmt.Errorf("timed out after %s", cleanUpTimeout))
	go func() {
		select {
		case <-s.options.ForceStop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// removeExtras deletes the objects that --apply created while the operator still runs and can handle the deletions.
// Objects that it cannot delete are retried after the operator has stopped.
func (s *cleanup) removeExtras(ctx context.Context) {
	if !s.options.CleanUp || len(s.extraTrace.Created()) == 0 {
		return
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	err := s.target.Probe(ctx)
	if err == nil {
		err = s.remove(ctx, s.extraTrace.Created())
	}
	if err != nil {
		s.dev.Printf("%v", err)
	}
}

// leave runs after the operator has stopped. With --clean-up it deletes the objects that this run created; otherwise, in
// a foreign cluster, it prints the commands that do so. It returns an error if it cannot do either.
func (s *cleanup) leave(ctx context.Context) error {
	if !s.options.CleanUp && !s.access().foreign() || s.nothingApplied() {
		return nil
	}
	ctx, cancel := s.limit(ctx)
	defer cancel()
	s.printChanged()
	if err := s.target.Probe(ctx); err != nil {
		return s.undetermined(err)
	}
	s.uninstalls = s.canUninstall(ctx)
	if !s.options.CleanUp {
		return s.printCommands(ctx)
	}
	if err := s.removeAll(ctx); err != nil {
		err = fmt.Errorf("delete the objects that this run created in the cluster %s: %w", s.target.Cluster, err)
		return errors.Join(err, s.printCommands(ctx))
	}
	return nil
}

// removeAll runs the operator's uninstall command if it applies, then deletes the objects that this run created.
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

// created returns the objects that this run created, in the order in which to delete them.
func (s *cleanup) created() []apply.Applied {
	return slices.Concat(s.extraTrace.Created(), s.trace.Created())
}

func (s *cleanup) nothingApplied() bool {
	return len(s.created())+len(s.extraTrace.Changed())+len(s.trace.Changed()) == 0
}

func (s *cleanup) remove(ctx context.Context, objects []apply.Applied) error {
	return s.apply.Remove(ctx, objects, func(one apply.Applied) { s.dev.Printf("removed %s", one.Name()) })
}

// printChanged prints the objects that existed before this run. They are kept because others may need them.
func (s *cleanup) printChanged() {
	var names []string
	for _, one := range slices.Concat(s.extraTrace.Changed(), s.trace.Changed()) {
		names = append(names, one.Name())
	}
	if len(names) > 0 {
		s.dev.Printf("kept objects that existed before this run and that it may have changed: %s", strings.Join(names, ", "))
	}
}

// canUninstall reports whether to run the operator's uninstall command. The command removes the finalizers and records from
// every object, so this run must have created the CRDs. Operators of other frameworks do not have the command.
func (s *cleanup) canUninstall(ctx context.Context) bool {
	if len(s.kinds) == 0 || apply.HasDefinition(s.trace.Changed()) || !apply.HasDefinition(s.trace.Created()) {
		return false
	}
	code, err := s.spawner.Run(ctx, reaper.Command{
		Args: []string{s.runDir.Binary, "uninstall", "-h"}, Env: s.environment(), Stdout: io.Discard, Stderr: io.Discard,
	})
	return err == nil && code == 0
}

// uninstall runs the operator's uninstall command with the permissions of the user, in the cluster that this run started in.
func (s *cleanup) uninstall(ctx context.Context) error {
	if err := clientcmd.WriteToFile(s.target.Raw, s.runDir.Admin); err != nil {
		return fmt.Errorf("write a kubeconfig for the operator's uninstall command: %w", err)
	}
	screen := s.screen.Stream("operator", operatorColour)
	defer func() { _ = screen.Close() }()
	args := []string{s.runDir.Binary, "uninstall", "--kubeconfig", s.runDir.Admin, "--state-namespace", s.account.Namespace}
	code, err := s.spawner.Run(ctx, reaper.Command{Args: args, Env: s.environment(), Stdout: screen, Stderr: screen})
	if err == nil && code != 0 {
		err = fmt.Errorf("run the operator's uninstall command: %s; see its output above", reaper.Describe(code))
	}
	return err
}
