package dev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// openCluster gets access to the cluster that was asked for, or else to a devcluster. The devcluster is nil with a
// cluster that was asked for.
func (s *session) openCluster(ctx context.Context) (*cluster.Devcluster, error) {
	if s.options.existing() {
		s.dev.Sayf("using the cluster that you named")
		return nil, s.load(ctx, s.options.Kubeconfig, s.options.Context)
	}
	devcluster, err := s.openDevcluster(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, devcluster.Kubeconfig, ""); err != nil {
		return nil, errors.Join(err, devcluster.Stop())
	}
	return devcluster, nil
}

func (s *session) load(ctx context.Context, kubeconfig, contextName string) error {
	target, err := cluster.Load(ctx, kubeconfig, contextName)
	if err != nil {
		return err
	}
	s.target = target
	s.dev.Sayf("the cluster is Kubernetes %s at %s (context %s)", target.Version, target.Config.Host, target.Context)
	s.screen.Plain("export KUBECONFIG=" + cluster.Quote(target.Path))
	return nil
}

// openDevcluster uses the devcluster that is running, or starts one.
func (s *session) openDevcluster(ctx context.Context) (*cluster.Devcluster, error) {
	program, err := cluster.NewFinder(s.options.Devcluster).Find()
	if err != nil {
		return nil, err
	}
	data, err := s.options.data()
	if err != nil {
		return nil, err
	}
	screen := s.screen.Stream("cluster", console.Magenta)
	options := cluster.Options{Program: program, Data: data, Fresh: s.options.Fresh, Screen: screen}
	running, err := cluster.Find(ctx, s.starter, options)
	if err != nil {
		return nil, err
	}
	if running != nil {
		s.dev.Sayf("using the devcluster that is running for %s; it goes on running at the end", data)
		return running, nil
	}
	s.dev.Sayf("starting a devcluster for %s …", data)
	return cluster.Start(ctx, s.starter, options)
}

// applyExtras applies once what --apply names.
func (s *session) applyExtras(ctx context.Context) {
	if len(s.extras) == 0 {
		return
	}
	err := s.apply.Apply(ctx, s.extras, func(object manifest.Object) {
		s.dev.Sayf("applied %s (%s)", object.Name(), object.Origin.File)
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	s.dev.Sayf("%v", err)
	if one, ok := errors.AsType[*apply.Error](err); ok {
		file := one.Object.Origin.File
		if file == manifest.Stdin {
			file = "-"
		}
		s.dev.Sayf("the operator runs on; to try again after a correction: %s apply -f %s", s.kubectl(), cluster.Quote(file))
	}
}

// sayHowToLook says what a person can do now.
func (s *session) sayHowToLook() {
	get := "get " + strings.Join(s.kinds, ",")
	if len(s.kinds) == 0 {
		get = "get all"
	}
	s.dev.Sayf("in another terminal:  %s %s", s.kubectl(), get)
	s.dev.Sayf("a change of the sources rebuilds and restarts the operator; Ctrl-C stops everything")
}

// kubectl returns the command line that reaches the cluster from another terminal in the same directory.
func (s *session) kubectl() string {
	if !s.options.existing() {
		self := s.options.Self + " kubectl"
		if s.options.Data == "" || filepath.Clean(s.options.Data) == DefaultData {
			return self
		}
		return "KUBECONFIG=" + cluster.Quote(s.target.Path) + " " + self
	}
	words := []string{"kubectl"}
	if s.options.Kubeconfig != "" {
		words = append(words, "--kubeconfig", cluster.Quote(s.target.Path))
	}
	return fmt.Sprintf("%s --context %s", strings.Join(words, " "), cluster.Quote(s.target.Context))
}
