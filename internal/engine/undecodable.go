package engine

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/report"
)

// undecodableReason is the reason of events about objects that cannot be decoded.
const undecodableReason = "Undecodable"

// undecodables holds the objects that cannot be decoded, to report each failure once.
type undecodables struct {
	tolerance *kube.Tolerance
	settings  declaration.Settings
	metrics   *metrics.Metrics
	events    *report.Events

	// mu guards reported.
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
