package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/declared"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/report"
)

// undecodableReason is the reason of events about objects that cannot be decoded.
const undecodableReason = "Undecodable"

// undecodables holds the objects that cannot be decoded, to report each failure once.
type undecodables struct {
	tolerance *kube.Tolerance
	settings  declared.Settings
	metrics   *metrics.Metrics
	events    *report.Events

	mu       sync.Mutex
	reported map[schema.GroupVersionKind]map[types.NamespacedName]string
}

func newUndecodables(o *Operator) *undecodables {
	return &undecodables{
		tolerance: o.Tolerance, settings: o.Settings, metrics: o.Metrics, events: o.events,
		reported: map[schema.GroupVersionKind]map[types.NamespacedName]string{},
	}
}

// set notes why an object cannot be decoded, or that it can be if failure is "". It returns whether that is new, and how many objects of the
// kind cannot be decoded.
func (u *undecodables) set(kind schema.GroupVersionKind, key types.NamespacedName, failure string) (changed bool, count int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.reported[kind]
	changed = known[key] != failure
	switch {
	case !changed:
	case failure == "":
		delete(known, key)
	case known == nil:
		known = map[types.NamespacedName]string{key: failure}
		u.reported[kind] = known
	default:
		known[key] = failure
	}
	return changed, len(known)
}

// failed reports whether an object of an event could not be decoded.
func (u *undecodables) failed(delivered any) bool {
	one, is := objectOf(delivered)
	return is && u.tolerance.Failure(one) != nil
}

// follow reports that an object cannot be decoded, or can be decoded again.
func (u *undecodables) follow(kind schema.GroupVersionKind, delivered any) {
	one, is := objectOf(delivered)
	if !is || !u.settings.Serves(one.GetNamespace()) {
		return
	}
	key, failure := client.ObjectKeyFromObject(one), u.tolerance.Failure(one)
	if failure == nil {
		if u.end(kind, delivered) {
			u.settings.Log.Info("object can be decoded again", "kind", kind.Kind, "object", key.String())
		}
		return
	}
	remedy := "correct the field"
	if one.GetDeletionTimestamp() != nil && slices.Contains(one.GetFinalizers(), u.settings.Finalizer()) {
		remedy += "; to delete the object without its delete handlers, set the annotation " + object.ReleaseAnnotation(u.settings.Identity) + " to " + object.ReleaseAll
	}
	changed, count := u.set(kind, key, string(one.GetUID())+failure.Error()+remedy)
	if !changed {
		return
	}
	u.metrics.Undecodable(u.settings.Identity, kind.GroupKind().String(), count)
	u.settings.Log.Error("object cannot be decoded, no handler runs for it", "kind", kind.Kind, "object", key.String(),
		"error", failure, "remedy", remedy)
	u.events.Warn(referenceTo(kind, one), undecodableReason, "no handler runs for the object: "+failure.Error()+"; "+remedy)
}

// end notes that an object can be decoded or is gone. It reports whether it could not be decoded before.
func (u *undecodables) end(kind schema.GroupVersionKind, delivered any) bool {
	key, is := keyOf(delivered)
	if !is {
		return false
	}
	changed, count := u.set(kind, key, "")
	if changed {
		u.metrics.Undecodable(u.settings.Identity, kind.GroupKind().String(), count)
	}
	return changed
}

// begin notes that the objects of a kind are watched. Its metric exists from then on.
func (u *undecodables) begin(kind schema.GroupVersionKind) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.metrics.Undecodable(u.settings.Identity, kind.GroupKind().String(), len(u.reported[kind]))
}

// clear removes all objects of a kind that is not served any more.
func (u *undecodables) clear(kind schema.GroupVersionKind) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.reported, kind)
	u.metrics.Undecodable(u.settings.Identity, kind.GroupKind().String(), 0)
}

// referenceTo is how an event refers to an object of the cache.
func referenceTo(kind schema.GroupVersionKind, one client.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: one.GetNamespace(), Name: one.GetName(), UID: one.GetUID(),
		ResourceVersion: one.GetResourceVersion(),
	}
}

// skipUndecodable ends the pass of an object that cannot be decoded. What is remembered of the object is kept until it can.
func (p *pass) skipUndecodable(ctx context.Context, cached client.Object) error {
	body, err := p.kind.Body(cached) // Only the metadata is complete.
	if err != nil {
		return err
	}
	p.seen = seen.Cached(body)
	p.recall()
	p.store.Note(p.key.Namespace, p.memory.uid, kindstore.Found{Unmoved: true}) // Its record may be anywhere.
	if cached.GetDeletionTimestamp() == nil {
		return nil
	}
	p.daemons.StopAll(p.key, daemons.ErrObjectDeleted)
	marked := slices.Contains(cached.GetFinalizers(), p.settings.Finalizer())
	if !marked || !p.releasesAll(cached) || p.daemons.Hold(p.key, p.memory.uid) {
		return nil // The end of a daemon leads to another pass.
	}
	return p.release(ctx)
}

// releasesAll reports whether the release annotation names all delete handlers.
func (p *pass) releasesAll(of client.Object) bool {
	asked := of.GetAnnotations()[object.ReleaseAnnotation(p.settings.Identity)]
	for _, declared := range p.view.Pure.Handlers {
		if declared.Verb == cause.Delete && asked != object.ReleaseAll && asked != declared.ID {
			return false
		}
	}
	return asked != ""
}

// release removes the finalizer from an object that cannot be decoded.
func (p *pass) release(ctx context.Context) error {
	live, err := p.server.Get(ctx, p.key)
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
	document.RemoveFinalizer(p.settings.Finalizer())
	if document.Empty() {
		return nil
	}
	p.report.ReleasedUndecodable()
	if _, err := p.server.Patch(ctx, p.key, "", document.Operations()); err != nil && !errors.Is(err, kube.ErrGone) {
		return err
	}
	p.memory.marked = false
	return nil
}

// decodable reports whether the Go type of the kind can hold an object.
func (p *pass) decodable(raw object.Body) bool { return kube.Undecodable(raw, p.kind.New()) == nil }

// canonical returns the object as the Go type of the kind writes it. The conversion itself would cut numbers that the Go type cannot hold.
func (p *pass) canonical(raw object.Body) (object.Body, error) {
	body, err := p.kind.Canonical(raw)
	if err != nil || !object.SameIntegers(raw, body) {
		if failure := kube.Undecodable(raw, p.kind.New()); failure != nil {
			return nil, failure //nolint:wrapcheck // The caller names the object.
		}
	}
	return body, err
}
