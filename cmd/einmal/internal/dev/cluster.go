package dev

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// openCluster opens the devcluster that is already running for the data directory, or starts one.
func (s *session) openCluster(ctx context.Context) (*cluster.Devcluster, error) {
	devcluster, err := s.openDevcluster(ctx)
	if err != nil {
		return nil, err
	}
	if s.target, err = cluster.Load(devcluster); err != nil {
		return nil, errors.Join(err, devcluster.Stop())
	}
	s.dev.Printf("the cluster is Kubernetes %s at %s", devcluster.Version, devcluster.Server)
	s.screen.Result("export KUBECONFIG=" + cluster.Quote(devcluster.Kubeconfig))
	return devcluster, nil
}

// openDevcluster finds or starts the devcluster.
func (s *session) openDevcluster(ctx context.Context) (*cluster.Devcluster, error) {
	program, err := cluster.FindProgram(s.options.Devcluster)
	if err != nil {
		return nil, err
	}
	screen := s.screen.Stream("cluster", console.Magenta)
	options := cluster.Options{Program: program, Data: s.data, Fresh: s.options.Fresh, Node: s.options.Node, Screen: screen}
	running, err := cluster.Find(ctx, s.spawner, options)
	if err != nil {
		return nil, err
	}
	if running != nil {
		s.dev.Printf("using the devcluster that is running for %s; it keeps running when einmal dev ends", s.data)
		return running, nil
	}
	s.dev.Printf("starting a devcluster for %s …", s.data)
	return cluster.Start(ctx, s.spawner, options)
}

// applyExtras applies the objects of --apply.
func (s *session) applyExtras(ctx context.Context) {
	if len(s.extras) == 0 {
		return
	}
	err := s.apply.Apply(ctx, s.extras, func(object manifest.Object) {
		s.dev.Printf("applied %s (%s)", object.Name(), object.Origin.File)
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	s.dev.Printf("%v", err)
	if one, ok := errors.AsType[*apply.Error](err); ok {
		file := one.Object.Origin.File
		if file == manifest.Stdin {
			file = "-"
		} else if absolute, err := filepath.Abs(file); err == nil {
			file = absolute
		}
		s.dev.Printf("the operator keeps running; correct the file, then run: %s apply -f %s", s.kubectl(), cluster.Quote(file))
	}
}
