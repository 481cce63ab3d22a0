package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/supervise"
)

// rollOut makes the operator of the newest sources run. What goes wrong is said; then all stays as it was.
func (s *session) rollOut(ctx context.Context) {
	built, err := s.build(ctx)
	if err == nil && built {
		err = s.install(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.dev.Sayf("%v", err)
	}
	if err != nil || !built {
		if s.tokens == nil {
			s.dev.Sayf("no operator is running; waiting for a change of the sources")
		} else {
			s.dev.Sayf("the operator from before keeps running; waiting for a change of the sources")
		}
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
	ok, err := source.Build(ctx, s.starter, s.dir, s.place.binary, compiler)
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

// install prepares the cluster for the program that was built, and has it run.
func (s *session) install(ctx context.Context) error {
	crds, err := s.printedCRDs(ctx)
	if err != nil {
		return err
	}
	s.kinds = apply.Names(crds)
	if err := s.applyAll(ctx, "the operator's CRDs", crds); err != nil {
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
	if err := s.applyAll(ctx, "the operator's identity and rights", rbac); err != nil {
		return err
	}
	if err := s.identify(ctx, account); err != nil {
		return err
	}
	select {
	case s.replace <- struct{}{}:
	default: // a replacement is on its way already
	}
	return nil
}

// printedCRDs asks the program for its definitions.
func (s *session) printedCRDs(ctx context.Context) ([]manifest.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, crdsTimeout)
	defer cancel()
	command := filepath.Base(s.place.binary) + " crds"
	output, err := s.starter.Output(ctx, guard.Command{Args: []string{s.place.binary, "crds"}, Env: s.environment()})
	if err != nil {
		return nil, fmt.Errorf("asking the operator for its CRDs: %w\n"+
			"remedy: \"%s\" must print them; a main that ends in op.Main() has that verb", err, command)
	}
	return manifest.Parse("the output of "+command, output)
}

// applyAll applies objects and says so in one message.
func (s *session) applyAll(ctx context.Context, what string, objects []manifest.Object) error {
	var names []string
	err := s.apply.Apply(ctx, objects, func(object manifest.Object) { names = append(names, object.Name()) })
	if err != nil {
		return fmt.Errorf("applying %s:\n%w", what, err)
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
		return nil, fmt.Errorf("the operator has no directory %s, so it is not known what to run it as: %w\n"+
			"remedy: put its ServiceAccount there, with the roles that it has in a real cluster and what binds them;\n"+
			"        it runs with these rights and no others", dir, err)
	}
	return objects, err
}

// identify gives the operator its token and kubeconfig. The first time, it also starts what keeps the token fresh and
// what keeps the operator running, once there is a program to run.
func (s *session) identify(ctx context.Context, account identity.Account) error {
	if s.tokens != nil && account != s.account {
		return fmt.Errorf("the operator's ServiceAccount was %s and is %s now; start einmal dev again to change it",
			s.account, account)
	}
	tokens := s.tokens
	if tokens == nil {
		client, err := corev1.NewForConfig(s.target.Config)
		if err != nil {
			return fmt.Errorf("making a client for tokens: %w", err)
		}
		tokens = identity.NewTokens(client, account, s.place.token, s.dev.Sayf)
	}
	if err := tokens.Renew(ctx); err != nil {
		return err
	}
	if err := identity.WriteKubeconfig(s.place.kubeconfig, s.target.Raw, account, s.place.token); err != nil {
		return err
	}
	if s.tokens == nil {
		s.tokens, s.account = tokens, account
		s.tasks.Go(func() { tokens.Keep(ctx) })
		s.tasks.Go(func() { s.supervise(ctx) })
	}
	return nil
}

// supervise runs the operator from the first rollout on.
func (s *session) supervise(ctx context.Context) {
	select {
	case <-s.replace:
	case <-ctx.Done():
		return
	}
	program := supervise.Program{
		Name: "the operator", Start: s.startOperator, Describe: guard.Describe, Grace: operatorGrace, Say: s.dev.Sayf,
	}
	supervise.Run(ctx, program, s.replace, func() {
		s.dev.Sayf("the operator runs as %s", s.account.User())
		s.starting.Do(func() {
			s.dev.Sayf("started after %s", time.Since(s.begin).Round(100*time.Millisecond))
			close(s.started)
		})
	})
}

func (s *session) startOperator(context.Context) (supervise.Process, error) {
	stdout := s.screen.Stream("operator", console.Green)
	stderr := s.screen.Stream("operator", console.Green)
	args := []string{
		s.place.binary, "run", "--kubeconfig", s.place.kubeconfig,
		"--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0",
	}
	process, err := s.starter.Start(guard.Command{
		Args: append(args, s.options.OperatorArgs...), Env: s.environment(), Stdout: stdout, Stderr: stderr,
	})
	if err != nil {
		return nil, err
	}
	p := &operatorProcess{Process: process, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		<-process.Done()
		_, _ = stdout.Close(), stderr.Close()
	}()
	return p, nil
}

// environment is that of this process, but for the kubeconfig: the operator's own, so that it cannot become another
// user by accident.
func (s *session) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") {
			env = append(env, variable)
		}
	}
	return append(env, "KUBECONFIG="+s.place.kubeconfig)
}

// operatorProcess is done when also its last words are on the screen.
type operatorProcess struct {
	*guard.Process
	done chan struct{}
}

// Done is closed when the operator has ended.
func (p *operatorProcess) Done() <-chan struct{} { return p.done }

// Stop stops the operator and tells whether it ended by itself.
func (p *operatorProcess) Stop(grace time.Duration) bool {
	byItself := p.Process.Stop(grace)
	<-p.done
	return byItself
}
