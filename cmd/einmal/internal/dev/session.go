package dev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/apply"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/rundir"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/watch"
)

// session is a single run of "einmal dev".
type session struct {
	options Options
	spawner *process.Spawner
	begin   time.Time

	screen *console.Console
	dev    *console.Stream

	data   string            // data directory of the devcluster, absolute
	dir    string            // directory of the operator's sources, absolute and without symbolic links
	tree   *source.Tree      // source files of the operator
	extras []manifest.Object // objects of --apply
	runDir *rundir.Dir
	target *cluster.Target
	apply  *apply.Applier

	watcher *watch.Watcher
	broken  atomic.Bool // the last build failed
	running atomic.Bool // the operator is running

	account  atomic.Pointer[identity.Account] // nil until a version is installed
	crash    *crashDetector                   // of the last start of the operator
	kinds    []string                         // names of the operator's kinds for kubectl
	replace  chan struct{}
	started  chan struct{} // closed after the first start of the operator
	starting sync.Once
}

// Run runs the operator until ctx is done and then stops everything that it started.
func Run(ctx context.Context, spawner *process.Spawner, o Options) error {
	s := &session{
		options: o, spawner: spawner, begin: time.Now(),
		screen:  console.New(o.Screen, o.Stdout, o.Coloured, "operator", "dev", "cluster"),
		replace: make(chan struct{}, 1), started: make(chan struct{}),
	}
	s.dev = s.screen.Stream("dev", console.Blue)
	err := ignoreCancellation(ctx, s.run(ctx))
	if err == nil {
		s.dev.Printf("stopped")
	}
	return err
}

// ignoreCancellation returns nil for an error that is only caused by the end of ctx.
func ignoreCancellation(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

func (s *session) run(ctx context.Context) error {
	if err := s.checkFiles(ctx); err != nil {
		return err
	}
	devcluster, err := s.openCluster(ctx)
	if err != nil {
		return err
	}
	err = ignoreCancellation(ctx, s.work(ctx, devcluster))
	if devcluster.Started() {
		s.dev.Printf("stopping the cluster …")
		err = errors.Join(err, devcluster.Stop())
	}
	return err
}

// checkFiles reads the operator's sources and manifests and reports errors that can be found without a cluster.
func (s *session) checkFiles(ctx context.Context) error {
	var err error
	if s.data, err = filepath.Abs(s.options.Data); err != nil {
		return fmt.Errorf("find the data directory %s: %w", s.options.Data, err)
	}
	dir, err := filepath.Abs(s.options.OperatorDir)
	if err != nil {
		return fmt.Errorf("find the operator's sources: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	s.dir = dir
	if s.tree, err = source.Inspect(ctx, s.spawner, dir); err != nil {
		return err
	}
	rbac, err := s.loadRBAC()
	if err != nil {
		return err
	}
	if _, err := identity.Choose(rbac, s.options.ServiceAccount, "default"); err != nil {
		return err
	}
	for _, file := range s.options.Apply {
		objects, err := manifest.Load(file, s.options.Stdin)
		if err != nil {
			return fmt.Errorf("flag --apply %s: %w", file, err)
		}
		s.extras = append(s.extras, objects...)
	}
	return nil
}

// work runs the operator in a cluster that is ready, until ctx is done or the cluster exits. Then it stops the operator.
func (s *session) work(ctx context.Context, devcluster *cluster.Devcluster) (err error) {
	if s.apply, err = apply.New(s.target.Config, s.target.Namespace); err != nil {
		return err
	}
	if s.runDir, err = rundir.Open(filepath.Join(s.data, ownName), s.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.runDir.Close()) }()
	if s.watcher, err = watch.New(s.dev.Printf); err != nil {
		return err
	}
	s.watchTree()
	ctx, cancel := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel(nil)
	changed := make(chan []string)
	tasks.Go(func() { s.supervise(ctx) })
	tasks.Go(func() { s.watcher.Run(ctx, changed) })
	tasks.Go(func() {
		if devcluster.AwaitEnd(ctx) {
			cancel(fmt.Errorf("the devcluster exited unexpectedly %s", devcluster.End()))
		}
	})
	return s.loop(ctx, changed, devcluster)
}

// loop rolls out the operator at the start and after each source change.
func (s *session) loop(ctx context.Context, changed <-chan []string, devcluster *cluster.Devcluster) error {
	if err := s.rollOut(ctx); err != nil {
		return err
	}
	started := s.started
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-started:
			started = nil
			s.applyExtras(ctx)
			s.printNextSteps(devcluster)
		case files := <-changed:
			s.dev.Printf("changed: %s", s.shorten(files))
			if err := s.rollOut(ctx); err != nil {
				return err
			}
		}
	}
}

// watchTree watches the operator's source files.
func (s *session) watchTree() {
	tree := s.tree
	relevant := func(file string) bool {
		if s.broken.Load() {
			return tree.MayFixBuild(file)
		}
		return tree.Contains(file)
	}
	if err := s.watcher.Watch(tree.Dirs(), relevant); err != nil {
		s.dev.Printf("%v\nsource changes may not be detected", err)
	}
}

// shorten lists the first few files, relative to the operator's directory.
func (s *session) shorten(files []string) string {
	const few = 3
	var names []string
	for i, file := range files {
		if i == few {
			names = append(names, fmt.Sprintf("and %d more", len(files)-few))
			break
		}
		if relative, err := filepath.Rel(s.dir, file); err == nil {
			file = relative
		}
		names = append(names, file)
	}
	return strings.Join(names, ", ")
}
