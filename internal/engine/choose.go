package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
	"github.com/einmal-operators/einmal/internal/selected"
)

// serveChosen serves what selections choose, until the context ends.
func (o *Operator) serveChosen(ctx context.Context) {
	c := selected.New(o.choice(o.serveOne, o.letGo))
	o.readiness.chooser.Store(c)
	c.Run(ctx)
}

// choice returns what a chooser needs to know.
func (o *Operator) choice(serve, release func(context.Context, *selected.Chosen)) selected.Options {
	return selected.Options{
		Selections: o.Selections, Settings: o.Settings, Kinds: o.Kinds, Discovery: o.Discovery, Informers: o.Informers, Serve: serve, Release: release,
	}
}

// serveOne handles the objects of a chosen kind until the context ends. What fails is tried again: the other kinds go on. Whether the kind is still served,
// the chooser sees.
func (o *Operator) serveOne(ctx context.Context, one *selected.Chosen) {
	o.cachedTypes.Add(one.Kind.GVK, one.Kind.New())
	l := o.loopOf(one.Kind)
	l.Serve = func(ctx context.Context, found kube.Description) error {
		return o.handle(ctx, one.Kind, found, one.State)
	}
	l.Vanished = func(context.Context, kube.Description) error {
		o.Settings.Log.Info("restarting the watch of kind", "kind", one.Kind.GVK.Kind, "apiVersion", one.Kind.GVK.GroupVersion().String())
		one.State.TakeUp(one.Kind.Relations)
		return nil
	}
	for {
		err := l.Run(ctx)
		if err == nil {
			return
		}
		o.readiness.report(one.Kind.GVK.String(), err.Error())
		o.Settings.Log.Error("cannot serve kind, will retry", "kind", one.Kind.GVK.Kind, "error", err)
		again := time.NewTimer(kindloop.Every)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// letGo lets go of what a kind has held that was chosen. What others watch too is theirs, and so is the end of its watch.
func (o *Operator) letGo(ctx context.Context, one *selected.Chosen) {
	shared := o.watches(one.Kind.GVK, func(watched declaration.Watched) bool { return kube.Alike(watched.New(), one.Kind.New()) })
	o.cachedTypes.Remove(one.Kind.GVK)
	if !shared {
		o.cachedTypes.RemoveCached(one.Kind.GVK, one.Kind.New())
		if err := o.Informers.Remove(ctx, one.Kind.GVK, one.Kind.New()); err != nil {
			o.Settings.Log.Debug("cannot remove informer", "kind", one.Kind.GVK.Kind, "error", err)
		}
	}
	if !o.watches(one.Kind.GVK, func(declaration.Watched) bool { return true }) {
		o.unwatched(one.Kind.GVK, one.Assigned.Plural)
	}
	o.readiness.forget(one.Kind.GVK.String())
}

// watches reports whether the kind is watched for the sake of others, in such a form.
func (o *Operator) watches(kind schema.GroupVersionKind, so func(declaration.Watched) bool) bool {
	for _, watched := range o.watched() {
		if watched.GVK == kind && so(watched) {
			return true
		}
	}
	return false
}
