package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
)

// rollOut builds and installs the operator and replaces the running version. If that fails, the previous version stays.
// It returns an error only if ctx is done.
func (s *session) rollOut(ctx context.Context) error {
	built, err := s.build(ctx)
	if err == nil && built {
		err = s.install(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && built:
		return nil
	case err != nil:
		s.dev.Printf("%v", err)
	}
	s.dev.Printf("%s; waiting for source changes", s.operatorState())
	return nil
}

// operatorState returns a message about the state of the previous version after a failed rollout.
func (s *session) operatorState() string {
	switch {
	case s.account.Load() == nil:
		return "no operator is running"
	case s.running.Load():
		return "the previous version keeps running"
	default:
		return "the previous version is not running now; the failed version does not replace it"
	}
}

// build builds the program and concurrently updates the set of watched source files.
func (s *session) build(ctx context.Context) (bool, error) {
	s.dev.Printf("building %s …", s.options.OperatorDir)
	inspected := make(chan struct{})
	go func() {
		defer close(inspected)
		if tree, err := source.Inspect(ctx, s.spawner, s.dir); err == nil {
			s.tree = tree
			s.watchTree()
		}
	}()
	begin := time.Now()
	compiler := s.screen.Stream("dev", console.Blue)
	ok, err := source.Build(ctx, s.spawner, s.dir, s.runDir.Next, compiler)
	_ = compiler.Close()
	took := time.Since(begin).Round(100 * time.Millisecond)
	<-inspected
	s.broken.Store(!ok)
	switch {
	case err != nil:
		return false, err
	case !ok:
		s.dev.Printf("the build failed after %s", took)
	default:
		s.dev.Printf("built in %s", took)
	}
	return ok, nil
}

// install applies the CRDs and RBAC manifests of the built program and then makes it replace the running one.
func (s *session) install(ctx context.Context) error {
	crds, err := s.printedCRDs(ctx)
	if err != nil {
		return err
	}
	rbac, err := s.loadRBAC()
	if err != nil {
		return err
	}
	account, err := identity.Choose(rbac, s.options.ServiceAccount, s.target.Namespace)
	if err != nil {
		return err
	}
	if err := s.applyAll(ctx, "the operator's CRDs", crds); err != nil {
		return err
	}
	s.kinds = apply.Names(crds)
	if err := s.applyAll(ctx, "the operator's identity and rights", rbac); err != nil {
		return err
	}
	if err := s.writeIdentity(ctx, account); err != nil {
		return err
	}
	if err := s.runDir.Swap(); err != nil {
		return fmt.Errorf("replace the operator's executable: %w", err)
	}
	s.account.Store(&account)
	select {
	case s.replace <- struct{}{}:
	default: // a replacement is already pending
	}
	return nil
}

// printedCRDs returns the CRDs that the built program prints.
func (s *session) printedCRDs(ctx context.Context) ([]manifest.Object, error) {
	command := filepath.Base(s.runDir.Next) + " crds"
	ctx, cancel := context.WithTimeoutCause(ctx, crdsTimeout, fmt.Errorf("timed out after %s", crdsTimeout))
	defer cancel()
	begin := time.Now()
	go func() {
		_ = wait.PollUntilContextCancel(ctx, crdsNotice, false, func(context.Context) (bool, error) {
			s.dev.Printf("waiting for \"%s\" to print the operator's CRDs: running for %s, timeout %s",
				command, time.Since(begin).Round(time.Second), crdsTimeout)
			return false, nil
		})
	}()
	output, err := s.spawner.Output(ctx, process.Command{Args: []string{s.runDir.Next, "crds"}, Env: s.environment()})
	if err != nil {
		return nil, fmt.Errorf("get the operator's CRDs: %w\n"+
			"remedy: \"%s\" must print them and exit; a main function that calls op.Main() provides this command.\n"+
			"        Code before op.Main() also runs for this command, so it must not block", err, command)
	}
	return manifest.Parse("the output of "+command, output)
}

// applyAll applies objects and prints their names in one message.
func (s *session) applyAll(ctx context.Context, what string, objects []manifest.Object) error {
	var names []string
	err := s.apply.Apply(ctx, objects, func(object manifest.Object) { names = append(names, object.Name()) })
	if err != nil {
		return fmt.Errorf("apply %s:\n%w", what, err)
	}
	if len(names) > 0 {
		s.dev.Printf("applied %s: %s", what, strings.Join(names, ", "))
	}
	return nil
}

func (s *session) loadRBAC() ([]manifest.Object, error) {
	dir := filepath.Join(s.dir, "config", "rbac")
	objects, err := manifest.Load(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the operator's ServiceAccount: no directory %s: %w\n"+
			"remedy: create the directory with the operator's ServiceAccount, roles and role bindings;\n"+
			"        the operator runs with these permissions only", dir, err)
	}
	return objects, err
}

// writeIdentity writes a new token for the operator, and a kubeconfig for the server that this run started with: later
// changes of the devcluster's kubeconfig have no effect.
func (s *session) writeIdentity(ctx context.Context, account identity.Account) error {
	if err := identity.WriteToken(ctx, s.target.Config, account, s.runDir.Token); err != nil {
		return err
	}
	return identity.WriteKubeconfig(s.runDir.Kubeconfig, s.target.Config, account, s.runDir.Token)
}
