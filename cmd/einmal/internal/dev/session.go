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
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/watch"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/workplace"
)

// session is one run of "einmal dev".
type session struct {
	options Options
	starter *guard.Starter
	begin   time.Time

	screen *console.Console
	dev    *console.Stream

	dir    string            // of the operator's sources, absolute and without symbolic links
	tree   *source.Tree      // what the operator is made of
	extras []manifest.Object // what --apply names
	place  *workplace.Place
	target *cluster.Target
	apply  *apply.Applier

	admitted   bool        // the user has agreed to changes of a foreign cluster
	trace      apply.Trace // what was applied for the operator
	extraTrace apply.Trace // what was applied for --apply

	watcher *watch.Watcher
	broken  atomic.Bool // the last build failed
	running atomic.Bool // the operator runs now

	tokens   *identity.Tokens // nil until the operator has an identity
	account  identity.Account
	kinds    []string // what to call the operator's kinds on a command line
	replace  chan struct{}
	started  chan struct{} // closed when the operator has been started for the first time
	starting sync.Once
	tasks    sync.WaitGroup
}

// Run works until ctx ends, and then stops in order what it has started.
func Run(ctx context.Context, starter *guard.Starter, o Options) error {
	s := &session{
		options: o, starter: starter, begin: time.Now(),
		screen:  console.New(o.Screen, o.Stdout, o.Coloured, "operator", "dev", "cluster"),
		replace: make(chan struct{}, 1), started: make(chan struct{}),
	}
	s.dev = s.screen.Stream("dev", console.Blue)
	err := unlessAsked(ctx, s.run(ctx))
	if err == nil {
		s.dev.Sayf("stopped")
	}
	return err
}

// unlessAsked drops an error that only says that ctx has ended.
func unlessAsked(ctx context.Context, err error) error {
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
	err = unlessAsked(ctx, s.work(ctx, devcluster))
	if devcluster != nil && devcluster.Started() {
		s.dev.Sayf("stopping the cluster …")
		err = errors.Join(err, devcluster.Stop())
	}
	return err
}

// checkFiles finds the mistakes that can be found without a cluster.
func (s *session) checkFiles(ctx context.Context) error {
	dir, err := filepath.Abs(s.options.OperatorDir)
	if err != nil {
		return fmt.Errorf("find the operator's sources: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	s.dir = dir
	if s.tree, err = source.Inspect(ctx, s.starter, dir); err != nil {
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
			return fmt.Errorf("--apply %s: %w", file, err)
		}
		s.extras = append(s.extras, objects...)
	}
	return nil
}

// work runs the operator in a cluster that is ready, until ctx or the cluster ends. Then it stops the operator and leaves
// the cluster as the user wants it.
func (s *session) work(ctx context.Context, devcluster *cluster.Devcluster) (err error) {
	if s.apply, err = apply.New(s.target.Config, s.target.Namespace); err != nil {
		return err
	}
	if err := s.openPlace(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.place.Close()) }()
	// The operator runs on for a moment after ctx has ended: it may have to handle deletions.
	operation, stopOperator := context.WithCancel(context.WithoutCancel(ctx))
	defer s.tasks.Wait()
	defer stopOperator()
	s.tasks.Go(func() { s.supervise(operation) })

	clusterEnded, err := s.untilEnd(ctx, devcluster)
	if clusterEnded {
		return err
	}
	err = unlessAsked(ctx, err)
	end := cleanup{session: s}
	end.removeExtras(ctx)
	stopOperator()
	s.tasks.Wait()
	return errors.Join(err, end.leave(ctx))
}

// openPlace makes the directory for the files of this run.
func (s *session) openPlace() error {
	files, locks, err := s.options.directories()
	if err != nil {
		return err
	}
	s.place, err = workplace.Open(files, locks, workplace.Key{Operator: s.dir, Cluster: s.target.ID()})
	return err
}

// untilEnd rolls the operator out whenever its sources change, until ctx or the cluster ends.
func (s *session) untilEnd(ctx context.Context, devcluster *cluster.Devcluster) (clusterEnded bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	var gone atomic.Bool
	if devcluster != nil {
		watching.Go(func() {
			select {
			case <-devcluster.Done(ctx):
				gone.Store(ctx.Err() == nil)
				cancel(fmt.Errorf("the devcluster ended by itself %s", devcluster.End()))
			case <-ctx.Done():
			}
		})
	}
	if s.watcher, err = watch.New(s.dev.Sayf); err != nil {
		return false, err
	}
	s.watchTree()
	changed := make(chan []string)
	watching.Go(func() { s.watcher.Run(ctx, changed) })
	err = s.loop(ctx, changed, devcluster != nil && devcluster.Started())
	return gone.Load(), err
}

// loop rolls the operator out, again after each change of its sources.
func (s *session) loop(ctx context.Context, changed <-chan []string, ownCluster bool) error {
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
			s.sayHowToLook(ownCluster)
		case files := <-changed:
			s.dev.Sayf("changed: %s", s.shorten(files))
			if err := s.rollOut(ctx); err != nil {
				return err
			}
		}
	}
}

// watchTree watches what the operator is made of.
func (s *session) watchTree() {
	tree := s.tree
	counts := func(file string) bool {
		if s.broken.Load() {
			return tree.MayMend(file)
		}
		return tree.Counts(file)
	}
	if err := s.watcher.Watch(tree.Dirs(), counts); err != nil {
		s.dev.Sayf("%v\nchanges there are not seen", err)
	}
}

// shorten names a few files as seen from the operator's directory.
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
