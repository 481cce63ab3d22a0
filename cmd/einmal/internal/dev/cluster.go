package dev

import (
	"context"
	"errors"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/consent"
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
	if given := s.options.YesApplyTo; given != "" && given != target.Cluster {
		return &consent.OtherError{Given: given, Cluster: target.Cluster, Server: target.Config.Host}
	}
	if !s.access().foreign() {
		s.sayKubeconfig()
	}
	return nil
}

// sayKubeconfig prints the line for other terminals. That of a foreign cluster is not printed before the user agrees to
// changes there.
func (s *session) sayKubeconfig() {
	s.screen.Result("export KUBECONFIG=" + cluster.Quote(s.target.Path))
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
	err := s.apply.Apply(ctx, s.extras, func(one apply.Applied) {
		s.extraTrace.Add(one)
		s.dev.Sayf("applied %s (%s)", one.Name(), one.Origin.File)
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
		s.dev.Sayf("the operator runs on; to try again after a correction: %s apply -f %s", s.access().kubectl(), cluster.Quote(file))
	}
}
