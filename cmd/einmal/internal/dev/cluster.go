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

// openCluster opens the existing cluster that the user named, or else a devcluster. For an existing cluster the returned
// devcluster is nil.
func (s *session) openCluster(ctx context.Context) (*cluster.Devcluster, error) {
	if s.options.existing() {
		s.dev.Printf("using the existing cluster named by --kubeconfig or --context")
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
	s.dev.Printf("the cluster is Kubernetes %s at %s (context %s)", target.Version, target.Config.Host, target.Context)
	if given := s.options.YesApplyTo; given != "" && given != target.Cluster {
		return &consent.OtherError{Given: given, Cluster: target.Cluster, Server: target.Config.Host}
	}
	if !s.access().foreign() {
		s.printKubeconfig()
	}
	return nil
}

// printKubeconfig prints the export line for other terminals. For a foreign cluster it is called only after the user has
// agreed to the changes. It prints nothing if the current context of the kubeconfig file is not the one in use: a command
// without --context would change another cluster.
func (s *session) printKubeconfig() {
	if s.target.CurrentContext == s.target.Context {
		s.screen.Result("export KUBECONFIG=" + cluster.Quote(s.target.Path))
	}
}

// openDevcluster returns the devcluster that is already running for the data directory, or starts one.
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
	running, err := cluster.Find(ctx, s.spawner, options)
	if err != nil {
		return nil, err
	}
	if running != nil {
		s.dev.Printf("using the devcluster that is running for %s; it keeps running when einmal dev ends", data)
		return running, nil
	}
	s.dev.Printf("starting a devcluster for %s …", data)
	return cluster.Start(ctx, s.spawner, options)
}

// applyExtras applies the objects of --apply.
func (s *session) applyExtras(ctx context.Context) {
	if len(s.extras) == 0 {
		return
	}
	err := s.apply.Apply(ctx, s.extras, func(one apply.Applied) {
		s.extraTrace.Add(one)
		s.dev.Printf("applied %s (%s)", one.Name(), one.Origin.File)
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	s.dev.Printf("%v", err)
	if one, ok := errors.AsType[*apply.Error](err); ok {
		file := one.Object.Origin.File
		if file == manifest.Stdin {
			file = "-"
		}
		s.dev.Printf("the operator keeps running; correct the file, then run: %s apply -f %s", s.access().kubectl(), cluster.Quote(file))
	}
}
