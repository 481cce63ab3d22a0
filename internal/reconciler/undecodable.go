package reconciler

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindstore"
)

// skipUndecodable ends the reconciliation of an object that cannot be decoded. What is remembered of the object is kept until it can.
func (d reader) skipUndecodable(ctx context.Context, cached client.Object) error {
	body, err := d.s.r.Kind.Body(cached) // Only the metadata is complete.
	if err != nil {
		return err
	}
	d.s.seen = seen.Cached(body)
	d.recall()
	d.s.r.Store.Note(d.s.key.Namespace, d.s.memory.uid, kindstore.Found{Unmoved: true}) // Its record may be anywhere.
	if cached.GetDeletionTimestamp() == nil {
		return nil
	}
	d.s.r.daemons.StopAll(d.s.key, daemons.ErrObjectDeleted)
	marked := slices.Contains(cached.GetFinalizers(), d.s.r.Settings.Finalizer())
	if !marked || !d.releasesAll(cached) || d.s.r.daemons.Hold(d.s.key, d.s.memory.uid) {
		return nil // The end of a daemon leads to another reconciliation.
	}
	return d.release(ctx)
}

// releasesAll reports whether the release annotation names all delete handlers.
func (d reader) releasesAll(of client.Object) bool {
	asked := of.GetAnnotations()[object.ReleaseAnnotation(d.s.r.Settings.Identity)]
	for _, declared := range d.s.view.Pure.Handlers {
		if declared.Verb == cause.Delete && asked != object.ReleaseAll && asked != declared.ID {
			return false
		}
	}
	return asked != ""
}

// release removes the finalizer from an object that cannot be decoded.
func (d reader) release(ctx context.Context) error {
	live, err := d.s.r.Server.Get(ctx, d.s.key)
	if errors.Is(err, kube.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.Text(live, "metadata", "uid") != d.s.memory.uid || d.s.r.decodable(live) {
		return nil // The cache shows it soon.
	}
	document := patch.New(live)
	document.RemoveFinalizer(d.s.r.Settings.Finalizer())
	if document.Empty() {
		return nil
	}
	d.s.report.ReleasedUndecodable()
	if _, err := d.s.r.Server.Patch(ctx, d.s.key, "", document.Operations()); err != nil && !errors.Is(err, kube.ErrGone) {
		return err
	}
	d.s.memory.marked = false
	return nil
}
