package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// moveEvery is how often a watermark may be written, at most.
const moveEvery = time.Minute

// steadyFor is how long a watch must not have failed before a watermark moves: what it has missed must have arrived.
const steadyFor = time.Minute

// heldLong is how long one object must hold a watermark back before the log warns about it.
const heldLong = 10 * time.Minute

// watermarks keeps the watermarks of one kind, one for each namespace if not all are served.
type watermarks struct {
	store kube.KindStore
	// resource names the kind in the store; served are the namespaces that are.
	resource   string
	served     filter.Namespaces
	margin     time.Duration
	health     *kube.WatchHealth
	namespaces *kube.NamespacedCache
	// lowered receives a value when a stored watermark must be lowered at once.
	lowered chan struct{}

	mu sync.Mutex
	// narrow: the cache is limited to some namespaces, although all are served.
	narrow bool
	// stored is what the store holds, by namespace; "" is all of them.
	stored map[string]time.Time
	// scopes is nil where no watermarks are kept.
	scopes map[string]*record.Watermark
	held   map[string]heldBack
}

// heldBack is how long an object has held a watermark back.
type heldBack struct {
	uid      string
	since    time.Time
	reported bool
}

// load takes up the watermarks before the first object is looked at.
func (w *watermarks) load(stored map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored, w.scopes, w.held = stored, map[string]*record.Watermark{}, map[string]heldBack{}
}

// scopeTo sets whether the cache is limited to some namespaces although all are served. Then each namespace has a watermark of
// its own: one for all namespaces would cover objects that this process cannot see.
func (w *watermarks) scopeTo(narrow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.narrow = narrow // mutant: narrow-cache
}

// with gives the watermark that an object falls under. That of all namespaces holds for each of them, but not the reverse: a
// scope that grows starts without one. Where no watermarks are kept, it does nothing.
func (w *watermarks) with(namespace string, use func(*record.Watermark)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scopes == nil {
		return
	}
	namespace = w.scopeLocked(namespace)
	scope, known := w.scopes[namespace]
	if !known {
		at := w.stored[namespace]
		if everywhere := w.stored[""]; everywhere.After(at) {
			at = everywhere
		}
		scope = record.NewWatermark(at, w.margin)
		w.scopes[namespace] = scope
	}
	use(scope)
}

// scopeOf returns the scope that an object in the namespace falls under.
func (w *watermarks) scopeOf(namespace string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scopeLocked(namespace)
}

func (w *watermarks) scopeLocked(namespace string) string {
	if w.served.All() && !w.narrow {
		return ""
	}
	return namespace
}

// coversLocked reports whether the stored watermark of a namespace covers an object in it. It counts also where one watermark is
// kept for all namespaces now, and was not before.
func (w *watermarks) coversLocked(namespace string, created time.Time) bool {
	at := w.stored[namespace]
	return !at.IsZero() && !created.After(at)
}

// known are the namespaces of which there are watermarks.
func (w *watermarks) known() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := slices.AppendSeq(slices.Collect(maps.Keys(w.scopes)), maps.Keys(w.stored))
	slices.Sort(known)
	return slices.Compact(known)
}

// forget takes out the watermark of a namespace that is gone. It reports whether there was one in the store.
func (w *watermarks) forget(namespace string) (stored bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, stored = w.stored[namespace]
	delete(w.scopes, namespace)
	delete(w.held, namespace)
	delete(w.stored, namespace)
	return stored
}

// keepStored keeps up to date what is stored of the kind, until the context ends.
func (k *keeper) keepStored(ctx context.Context) {
	if !k.watermarks.store.Kept() || !k.shapes.now().pure.EveryObject() && k.places.fixed {
		return
	}
	ticker := time.NewTicker(moveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.watermarks.lowered:
			k.moveWatermarks(ctx, k.lowerWatermark)
		case <-ticker.C:
			k.forgetNamespaces(ctx)
			k.moveWatermarks(ctx, k.raiseWatermark)
			k.endMoves(ctx)
		}
	}
}

// forgetNamespaces removes what is stored of namespaces that are gone.
func (k *keeper) forgetNamespaces(ctx context.Context) {
	for _, namespace := range append(k.watermarks.known(), k.places.known()...) {
		if namespace == "" || !k.watermarks.namespaces.Gone(namespace) {
			continue
		}
		watermark, places := k.watermarks.forget(namespace), k.places.forget(namespace)
		if !watermark && !places {
			continue
		}
		if err := k.watermarks.store.Remove(ctx, k.watermarks.resource, namespace); err != nil {
			k.reports.Log.Debug("cannot remove what is stored of a deleted namespace", "namespace", namespace, "error", err)
		}
	}
}

// moveWatermarks stores the watermarks that have moved.
func (k *keeper) moveWatermarks(ctx context.Context, move func(context.Context, string)) {
	if !k.shapes.now().pure.EveryObject() {
		return
	}
	for _, namespace := range k.watermarks.known() {
		if namespace == "" || !k.watermarks.namespaces.Gone(namespace) {
			move(ctx, namespace)
		}
	}
}

// raiseWatermark stores the watermark of a namespace if it has moved. Before the first list is handled, or while the watch is not steady,
// it may only be lowered.
func (k *keeper) raiseWatermark(ctx context.Context, namespace string) {
	if !k.startup.Complete() || !k.watermarks.health.Steady(k.watermarks.resource, namespace, steadyFor) {
		k.lowerWatermark(ctx, namespace)
		return
	}
	k.moveWatermark(ctx, namespace, func(*record.Watermark, time.Time) bool { return true })
	k.reportHeld(namespace)
}

// lowerWatermark stores the watermark of a namespace if it must be lowered.
func (k *keeper) lowerWatermark(ctx context.Context, namespace string) {
	k.moveWatermark(ctx, namespace, (*record.Watermark).Lowers)
}

// moveWatermark stores the watermark of a namespace if it has moved and may be moved there.
func (k *keeper) moveWatermark(ctx context.Context, namespace string, may func(*record.Watermark, time.Time) bool) {
	w := &k.watermarks
	w.mu.Lock()
	scope, known := w.scopes[namespace]
	moved, next := false, time.Time{}
	if known {
		next, moved = scope.Next(time.Now())
		moved = moved && may(scope, next)
	}
	w.mu.Unlock()
	if !moved {
		return
	}
	if err := w.store.WriteWatermark(ctx, w.resource, namespace, next); err != nil {
		k.reports.Log.Warn("cannot store the watermark, records lost while the operator is down will not be detected",
			"error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored[namespace] = next
	scope.Moved(next)
}

// reportHeld warns once about an object that has held a watermark back for a long time.
func (k *keeper) reportHeld(namespace string) {
	w := &k.watermarks
	w.mu.Lock()
	defer w.mu.Unlock()
	scope, known := w.scopes[namespace]
	if !known {
		return
	}
	now := time.Now()
	by, uid, held := scope.Held(now)
	last := w.held[namespace]
	switch {
	case !held:
		delete(w.held, namespace)
	case last.uid != uid:
		w.held[namespace] = heldBack{uid: uid, since: now}
	case !last.reported && now.Sub(last.since) >= heldLong:
		last.reported = true
		w.held[namespace] = last
		k.reports.Log.Warn("object without a record holds the watermark back, lost records of newer objects will not be detected",
			"object", by.Name, "created", by.Created)
	}
}

// loadStored reads what the store holds, however long that takes; without the right to read it there is nothing.
func (k *keeper) loadStored(ctx context.Context) error {
	watermarked := k.shapes.now().pure.EveryObject()
	if !watermarked && k.places.fixed {
		return nil
	}
	if !k.watermarks.store.Kept() {
		k.reports.Log.Debug("no namespace for watermarks, records lost while the operator is down will not be detected")
		return nil
	}
	retry := time.NewTicker(lookEvery)
	defer retry.Stop()
	for {
		stored, err := k.watermarks.store.Read(ctx, k.watermarks.resource)
		if err == nil {
			k.places.load(stored.Places)
			if watermarked {
				k.watermarks.load(stored.Watermarks)
			}
			return nil
		}
		k.reports.Log.Warn("cannot read the watermarks, records lost while the operator is down will not be detected",
			"error", err)
		if apierrors.IsForbidden(err) {
			k.watermarks.store.Place.Namespace = ""
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		}
	}
}

// noteRecorded tells the watermark that the object has a record.
func (p *pass) noteRecorded() {
	p.underWatermark(func(scope *record.Watermark, created time.Time) { scope.Recorded(p.memory.uid, created) })
}

// noteMissing tells the watermark that the object has no record. An object that is being deleted is never Lost and may never
// get a record, so it does not hold the watermark back.
func (p *pass) noteMissing() {
	if p.seen.Deleting() { // mutant: terminating-holds
		p.forgetMissing(p.key.Namespace, p.memory.uid)
		return
	}
	p.underWatermark(func(scope *record.Watermark, created time.Time) {
		scope.Missing(p.memory.uid, p.key.String(), created)
	})
}

// settled reports whether the object must have had a record: it is covered by the watermark, and existed before this process
// saw it. An object that this process saw arrive had none, however late it arrived.
func (p *pass) settled() (covered bool) {
	if !p.memory.older { // mutant: late-arrival-is-lost
		return false
	}
	p.underWatermark(func(scope *record.Watermark, created time.Time) {
		covered = scope.Covers(created) || p.watermarks.coversLocked(p.key.Namespace, created)
	})
	return covered // mutant: lost-is-created
}

// underWatermark does nothing where an object without a record is nothing special, since no handler may be for it.
func (p *pass) underWatermark(use func(scope *record.Watermark, created time.Time)) {
	if !p.pure.EveryObject() {
		return
	}
	created, err := time.Parse(time.RFC3339, object.Text(p.seen.Body(), "metadata", "creationTimestamp"))
	if err != nil {
		return // No object from an API server is without one.
	}
	p.watermarks.with(p.key.Namespace, func(scope *record.Watermark) { use(scope, created) })
}
