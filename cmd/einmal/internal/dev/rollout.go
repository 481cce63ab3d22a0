package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/consent"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
)

// rollOut makes the operator of the newest sources run. After a failure the operator from before stays; rollOut returns
// only an error that ends the run.
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
	case endsRun(err):
		return err
	case err != nil:
		s.dev.Sayf("%v", err)
	}
	s.dev.Sayf("%s; waiting for a change of the sources", s.operatorState())
	return nil
}

// endsRun reports whether a failure is about the cluster, so that no change of the sources can help.
func endsRun(err error) bool {
	var moved *cluster.MovedError
	var missing *consent.MissingError
	var declined *consent.DeclinedError
	return errors.As(err, &moved) || errors.As(err, &missing) || errors.As(err, &declined)
}

// operatorState says what runs while the newest sources cannot.
func (s *session) operatorState() string {
	switch {
	case s.tokens == nil:
		return "no operator is running"
	case s.running.Load():
		return "the operator from before keeps running"
	default:
		return "the operator from before is not running now; a version that fails does not replace it"
	}
}

// build builds the program, and meanwhile looks at what it is made of now.
func (s *session) build(ctx context.Context) (bool, error) {
	s.dev.Sayf("building %s …", s.options.OperatorDir)
	inspected := make(chan struct{})
	go func() {
		defer close(inspected)
		if tree, err := source.Inspect(ctx, s.starter, s.dir); err == nil {
			s.tree = tree
			s.watchTree()
		}
	}()
	begin := time.Now()
	compiler := s.screen.Stream("dev", console.Blue)
	ok, err := source.Build(ctx, s.starter, s.dir, s.place.Next, compiler)
	_ = compiler.Close()
	took := time.Since(begin).Round(100 * time.Millisecond)
	<-inspected
	s.broken.Store(!ok)
	switch {
	case err != nil:
		return false, err
	case !ok:
		s.dev.Sayf("the build failed after %s", took)
	default:
		s.dev.Sayf("built in %s", took)
	}
	return ok, nil
}

// install prepares the cluster for the program that was built, and then lets it replace the one that runs.
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
	if err := s.admit(ctx, slices.Concat(crds, rbac), account); err != nil {
		return err
	}
	if err := s.applyAll(ctx, "the operator's CRDs", crds); err != nil {
		return err
	}
	s.kinds = apply.Names(crds)
	if err := s.applyAll(ctx, "the operator's identity and rights", rbac); err != nil {
		return err
	}
	tokens, err := s.renewIdentity(ctx, account)
	if err != nil {
		return err
	}
	if err := s.place.Swap(); err != nil {
		return fmt.Errorf("put the built operator in place: %w", err)
	}
	if s.tokens == nil { // later, supervise reads them concurrently
		s.tokens, s.account = tokens, account
	}
	select {
	case s.replace <- struct{}{}:
	default: // a replacement is on its way already
	}
	return nil
}

// printedCRDs asks the program that was built for its definitions.
func (s *session) printedCRDs(ctx context.Context) ([]manifest.Object, error) {
	command := filepath.Base(s.place.Next) + " crds"
	ctx, cancel := context.WithTimeoutCause(ctx, crdsTimeout, fmt.Errorf("it did not end within %s", crdsTimeout))
	defer cancel()
	defer s.reportWaiting(command)()
	output, err := s.starter.Output(ctx, guard.Command{Args: []string{s.place.Next, "crds"}, Env: s.environment()})
	if err != nil {
		return nil, fmt.Errorf("ask the operator for its CRDs: %w\n"+
			"remedy: \"%s\" must print them and end; a main that ends in op.Main() has that verb.\n"+
			"        Code before op.Main() runs for that verb too, and must not wait for anything", err, command)
	}
	return manifest.Parse("the output of "+command, output)
}

// reportWaiting says again and again that a command has not ended, until the returned function is called.
func (s *session) reportWaiting(command string) (stop func()) {
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		begin, tick := time.Now(), time.NewTicker(crdsNotice)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.dev.Sayf("waiting for \"%s\" to print the operator's CRDs: it has run for %s and may take %s",
					command, time.Since(begin).Round(time.Second), crdsTimeout)
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}

// applyAll applies objects and says so in one message.
func (s *session) applyAll(ctx context.Context, what string, objects []manifest.Object) error {
	var names []string
	err := s.apply.Apply(ctx, objects, func(one apply.Applied) {
		s.trace.Add(one)
		names = append(names, one.Name())
	})
	if err != nil {
		return fmt.Errorf("apply %s:\n%w", what, err)
	}
	if len(names) > 0 {
		s.dev.Sayf("applied %s: %s", what, strings.Join(names, ", "))
	}
	return nil
}

func (s *session) loadRBAC() ([]manifest.Object, error) {
	dir := filepath.Join(s.dir, "config", "rbac")
	objects, err := manifest.Load(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the operator has no directory %s, so its ServiceAccount is unknown: %w\n"+
			"remedy: put its ServiceAccount there, with the roles that it has in a real cluster and what binds them;\n"+
			"        it runs with these rights and no others", dir, err)
	}
	return objects, err
}

// renewIdentity gives the operator a new token, and a kubeconfig for the server that this run began with.
func (s *session) renewIdentity(ctx context.Context, account identity.Account) (*identity.Tokens, error) {
	if s.tokens != nil && account != s.account {
		return nil, fmt.Errorf("the operator's ServiceAccount was %s and is %s now\nremedy: start einmal dev again", s.account, account)
	}
	tokens := s.tokens
	if tokens == nil {
		client, err := corev1.NewForConfig(s.target.Config)
		if err != nil {
			return nil, fmt.Errorf("make a client for tokens: %w", err)
		}
		tokens = identity.NewTokens(client, account, s.place.Token, s.dev.Sayf)
	}
	if err := tokens.Renew(ctx); err != nil {
		return nil, err
	}
	if err := identity.WriteKubeconfig(s.place.Kubeconfig, s.target.Raw, account, s.place.Token); err != nil {
		return nil, err
	}
	return tokens, nil
}
