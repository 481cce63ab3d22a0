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

// skipUndecodable ends the pass of an object that cannot be decoded. What is remembered of the object is kept until it can.
func (p *pass) skipUndecodable(ctx context.Context, cached client.Object) error {
	body, err := p.r.Kind.Body(cached) // Only the metadata is complete.
	if err != nil {
		return err
	}
	p.seen = seen.Cached(body)
	p.recall()
	p.r.Store.Note(p.key.Namespace, p.memory.uid, kindstore.Found{Unmoved: true}) // Its record may be anywhere.
	if cached.GetDeletionTimestamp() == nil {
		return nil
	}
	p.r.daemons.StopAll(p.key, daemons.ErrObjectDeleted)
	marked := slices.Contains(cached.GetFinalizers(), p.r.Settings.Finalizer())
	if !marked || !p.releasesAll(cached) || p.r.daemons.Hold(p.key, p.memory.uid) {
		return nil // The end of a daemon leads to another pass.
	}
	return p.release(ctx)
}

// releasesAll reports whether the release annotation names all delete handlers.
func (p *pass) releasesAll(of client.Object) bool {
	asked := of.GetAnnotations()[object.ReleaseAnnotation(p.r.Settings.Identity)]
	for _, declared := range p.view.Pure.Handlers {
		if declared.Verb == cause.Delete && asked != object.ReleaseAll && asked != declared.ID {
			return false
		}
	}
	return asked != ""
}

// release removes the finalizer from an object that cannot be decoded.
func (p *pass) release(ctx context.Context) error {
	live, err := p.r.Server.Get(ctx, p.key)
	if errors.Is(err, kube.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.Text(live, "metadata", "uid") != p.memory.uid || p.decodable(live) {
		return nil // The cache shows it soon.
	}
	document := patch.New(live)
	document.RemoveFinalizer(p.r.Settings.Finalizer())
	if document.Empty() {
		return nil
	}
	p.report.ReleasedUndecodable()
	if _, err := p.r.Server.Patch(ctx, p.key, "", document.Operations()); err != nil && !errors.Is(err, kube.ErrGone) {
		return err
	}
	p.memory.marked = false
	return nil
}

// decodable reports whether the Go type of the kind can hold an object.
func (p *pass) decodable(raw object.Body) bool { return kube.Undecodable(raw, p.r.Kind.New()) == nil }

// canonical returns the object as the Go type of the kind writes it. The conversion itself would cut numbers that the Go type cannot hold.
func (p *pass) canonical(raw object.Body) (object.Body, error) {
	body, err := p.r.Kind.Canonical(raw)
	if err != nil || !object.SameIntegers(raw, body) {
		if failure := kube.Undecodable(raw, p.r.Kind.New()); failure != nil {
			return nil, failure //nolint:wrapcheck // The caller names the object.
		}
	}
	return body, err
}
