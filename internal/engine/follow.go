package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/objects"
)

// change is an event of a watch: before is nil where there was no object, after where there is none.
type change struct {
	kind          cause.Cause
	before, after client.Object
}

// objects are those that the change is about.
func (c change) objects() []client.Object {
	var all []client.Object
	for _, one := range []client.Object{c.before, c.after} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// follower follows the objects of a kind that need not be served yet.
type follower struct {
	declaration.Watched

	operator *Operator
	// changed is called for each event, one after the other; vanished when the kind, and so all of its objects, is gone.
	changed  func(change)
	readable readable
	vanished func()
	// begun is closed when it is known whether there is a list to wait for. late: there was not, since the kind was not
	// served then.
	begun chan struct{}
	late  atomic.Bool
	known func()
	// removed is closed when other code removes the informer.
	removed      <-chan struct{}
	registration toolscache.ResourceEventHandlerRegistration
	// complete: every object of the first list has been delivered.
	complete atomic.Bool
}

func newFollower(o *Operator, watched declaration.Watched, changed func(change)) *follower {
	f := &follower{Watched: watched, operator: o, vanished: func() {}, begun: make(chan struct{})}
	f.readable.failed = o.undecodables.failed
	f.changed = func(delivered change) {
		for _, one := range f.readable.of(delivered) {
			changed(one)
		}
	}
	f.known = sync.OnceFunc(func() { close(f.begun) })
	return f
}

// follow follows the objects of the kind whenever it is served, until the context ends.
func (f *follower) follow(ctx context.Context) {
	log := f.operator.Settings.Log.With("kind", f.GVK.Kind)
	l := kindloop.Loop{
		Informers: f.operator.Informers, Served: served(f.operator.Discovery, f.GVK),
		Find: func(context.Context) (kube.Description, error) {
			err := f.register(ctx)
			if err == nil {
				f.known()
			}
			return kube.Description{}, err
		},
		Waiting: func(err error, news bool) {
			if f.operator.readiness.report(f.Place(), err.Error()); news {
				f.logAwaited(log, err)
			}
			if errors.Is(err, kube.ErrNotServed) {
				f.late.Store(true) // Where there is no kind there are no objects to wait for.
				f.known()
			}
		},
		Serve: func(ctx context.Context, _ kube.Description) error {
			select {
			case <-ctx.Done():
			case <-f.removed:
			}
			return nil
		},
		Vanished: func(ctx context.Context, _ kube.Description) error {
			f.complete.Store(false)
			f.late.Store(true)
			f.vanished()
			log.Warn("related kind no longer served")
			f.removeInformer(ctx)
			return nil
		},
	}
	_ = l.Run(ctx) // It has no errors of its own.
}

// removeInformer removes the informer of a kind that has vanished. That of a handled kind is removed by what handles the kind: it is waited for.
func (f *follower) removeInformer(ctx context.Context) {
	handled := slices.ContainsFunc(f.operator.Kinds, func(kind declaration.Kind) bool { return kind.GVK == f.GVK })
	if handled {
		select {
		case <-ctx.Done():
		case <-f.removed:
		}
		return
	}
	if err := f.operator.Informers.Remove(ctx, f.GVK, f.New()); err != nil {
		f.operator.Settings.Log.Debug("cannot remove informer", "kind", f.GVK.Kind, "error", err)
	}
	f.operator.undecodables.clear(f.GVK)
}

// logAwaited logs why a related kind is not served yet.
func (f *follower) logAwaited(log *slog.Logger, err error) {
	if !f.operator.Problems.Report(log, err) {
		log.Warn("related kind not served, waiting for it", "apiVersion", f.GVK.GroupVersion().String(), "error", err,
			"remedy", "install its CustomResourceDefinition")
	}
}

func (f *follower) register(ctx context.Context) error {
	if err := kube.Served(ctx, f.operator.Discovery, f.GVK); err != nil {
		return err
	}
	f.operator.readiness.report(f.Place(), notListed)
	shared, removed, err := f.operator.Informers.Get(ctx, f.GVK, f.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.GVK, err)
	}
	f.operator.undecodables.begin(f.GVK)
	f.readable.forget()
	registration, err := shared.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			kind := objects.Added
			if initial {
				kind = objects.Listed
			}
			after, _ := objectOf(added)
			f.operator.undecodables.follow(f.GVK, added)
			f.changed(change{kind: kind, after: after})
		},
		UpdateFunc: func(old, updated any) {
			before, _ := objectOf(old)
			after, _ := objectOf(updated)
			if before == nil || after == nil || unchanged(before, after) {
				return
			}
			f.operator.undecodables.follow(f.GVK, updated)
			f.changed(change{kind: objects.Modified, before: before, after: after})
		},
		DeleteFunc: func(deleted any) {
			before, _ := objectOf(deleted)
			f.operator.undecodables.end(f.GVK, deleted)
			f.changed(change{kind: objects.Deleted, before: before})
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.GVK, err)
	}
	f.removed = removed
	if !f.late.Load() {
		f.registration = registration
	}
	context.AfterFunc(ctx, func() {
		if err := shared.RemoveEventHandler(registration); err != nil {
			f.operator.Settings.Log.Debug("cannot remove the event handler of informer", "kind", f.GVK.Kind, "error", err)
		}
	})
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			f.complete.Store(true)
			f.operator.readiness.report(f.Place(), "")
		}
	}()
	return nil
}

// listed waits until every object of the first list has been delivered. A kind that was not served has no list.
func (f *follower) listed(ctx context.Context) error {
	select {
	case <-f.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.registration == nil {
		return nil
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), f.registration.HasSynced) {
		return fmt.Errorf("wait for the initial list of %s: %w", f.GVK.Kind, context.Cause(ctx))
	}
	f.complete.Store(true)
	return nil
}
