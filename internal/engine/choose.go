package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
)

// errUnknownKinds keeps an operator from being ready that has not asked yet.
var errUnknownKinds = errors.New("discovery has not succeeded yet")

// serveChosen serves what selections choose, until the context ends.
func (o *Operator) serveChosen(ctx context.Context) {
	c := newChooser(o)
	c.serve, c.release = o.serveOne, o.letGo
	o.chooser.Store(c)
	c.run(ctx)
}

// serveOne handles the objects of a chosen kind until the context ends. What fails is tried again: the other kinds go on. Whether the kind is still served,
// the chooser sees.
func (o *Operator) serveOne(ctx context.Context, one *chosen) {
	o.cachedTypes.Add(one.GVK, one.New())
	l := o.loopOf(one.Kind)
	l.Serve = func(ctx context.Context, found kube.Description) error {
		return o.handle(ctx, one.Kind, found, one.state)
	}
	l.Vanished = func(context.Context, kube.Description) error {
		o.Settings.Log.Info("restarting the watch of kind", "kind", one.GVK.Kind, "apiVersion", one.GVK.GroupVersion().String())
		one.state.TakeUp(one.Relations)
		return nil
	}
	for {
		err := l.Run(ctx)
		if err == nil {
			return
		}
		o.readiness.report(one.GVK.String(), err.Error())
		o.Settings.Log.Error("cannot serve kind, will retry", "kind", one.GVK.Kind, "error", err)
		again := time.NewTimer(kindloop.Every)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// letGo lets go of what a kind has held that was chosen. What others watch too is theirs, and so is the end of its watch.
func (o *Operator) letGo(ctx context.Context, one *chosen) {
	shared := o.watches(one.GVK, func(watched declaration.Watched) bool { return kube.Alike(watched.New(), one.New()) })
	o.cachedTypes.Remove(one.GVK)
	if !shared {
		o.cachedTypes.RemoveCached(one.GVK, one.New())
		if err := o.Informers.Remove(ctx, one.GVK, one.New()); err != nil {
			o.Settings.Log.Debug("cannot remove informer", "kind", one.GVK.Kind, "error", err)
		}
	}
	if !o.watches(one.GVK, func(declaration.Watched) bool { return true }) {
		o.unwatched(one.GVK, one.assigned.Plural)
	}
	o.readiness.forget(one.GVK.String())
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

// chosenReady reports whether what selections choose is served.
func (o *Operator) chosenReady() error {
	switch chooser := o.chooser.Load(); {
	case len(o.Selections) == 0:
		return nil
	case chooser == nil:
		return errUnknownKinds
	default:
		return chooser.ready(o.readiness.of)
	}
}
