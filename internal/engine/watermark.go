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

// watermarks keeps the watermarks of one kind, one for each namespace if not all are served.
type watermarks struct {
	ledger kube.Ledger
	// resource names the kind in the ledger; served are the namespaces that are.
	resource string
	served   filter.Namespaces
	streams  *kube.Streams
	spaces   *kube.Spaces

	mu sync.Mutex
	// stored is what the ledger holds, by namespace; "" is all of them.
	stored map[string]time.Time
	scopes map[string]*record.Watermark
}

// load reads the watermarks before the first object is looked at.
func (w *watermarks) load(ctx context.Context) error {
	var stored map[string]time.Time
	if w.ledger.Kept() {
		var err error
		if stored, err = w.ledger.Read(ctx, w.resource); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored, w.scopes = stored, map[string]*record.Watermark{}
	if w.stored == nil {
		w.stored = map[string]time.Time{}
	}
	return nil
}

// with gives the watermark that an object falls under. That of all namespaces holds for each of them, but not the reverse: a
// scope that grows starts without one.
func (w *watermarks) with(namespace string, margin time.Duration, use func(*record.Watermark)) {
	if w.served.All() {
		namespace = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scopes == nil {
		return
	}
	scope, begun := w.scopes[namespace]
	if !begun {
		scope = &record.Watermark{Margin: margin, At: w.stored[namespace]}
		if everywhere := w.stored[""]; everywhere.After(scope.At) {
			scope.At = everywhere
		}
		w.scopes[namespace] = scope
	}
	use(scope)
}

// known are the namespaces of which there are watermarks.
func (w *watermarks) known() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := slices.AppendSeq(slices.Collect(maps.Keys(w.scopes)), maps.Keys(w.stored))
	slices.Sort(known)
	return slices.Compact(known)
}

// forget takes out the watermark of a namespace that is gone.
func (w *watermarks) forget(ctx context.Context, namespace string) error {
	w.mu.Lock()
	_, stored := w.stored[namespace]
	delete(w.scopes, namespace)
	delete(w.stored, namespace)
	w.mu.Unlock()
	if !stored {
		return nil
	}
	return w.ledger.Remove(ctx, w.resource, namespace)
}

// move stores the watermarks that have moved, until the context ends.
func (k *keeper) moveWatermarks(ctx context.Context) {
	if !k.watermarks.ledger.Kept() || !k.shapes.now().pure.EveryObject() {
		return
	}
	ticker := time.NewTicker(moveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, namespace := range k.watermarks.known() {
			if namespace == "" || !k.watermarks.spaces.Gone(namespace) {
				k.moveWatermark(ctx, namespace)
			} else if err := k.watermarks.forget(ctx, namespace); err != nil {
				k.log.Debug("the watermark of a namespace that is gone stays", "namespace", namespace, "error", err)
			}
		}
	}
}

func (k *keeper) moveWatermark(ctx context.Context, namespace string) {
	w := &k.watermarks
	if !k.startup.over() || !w.streams.Steady(w.resource, namespace, steadyFor) {
		return
	}
	w.mu.Lock()
	scope, begun := w.scopes[namespace]
	moved, next := false, time.Time{}
	if begun {
		next, moved = scope.Next(time.Now())
	}
	w.mu.Unlock()
	if !moved {
		return
	}
	if err := w.ledger.Write(ctx, w.resource, namespace, next); err != nil {
		k.log.Warn("the watermark cannot be stored: an object whose record is lost while the operator is down will count as new",
			"error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored[namespace] = next
	scope.Moved(next)
}

// loadWatermarks reads what the ledger holds, however long that takes; without the right to read it there are none.
func (k *keeper) loadWatermarks(ctx context.Context) error {
	if !k.shapes.now().pure.EveryObject() {
		return nil
	}
	if !k.watermarks.ledger.Kept() {
		k.log.Debug("no namespace is known to keep watermarks in: an object whose record is lost while the operator is down will count as new")
	}
	retry := time.NewTicker(lookEvery)
	defer retry.Stop()
	for {
		err := k.watermarks.load(ctx)
		if err == nil {
			return nil
		}
		k.log.Warn("the watermarks cannot be read: an object whose record is lost while the operator is down will count as new",
			"error", err)
		if apierrors.IsForbidden(err) {
			k.watermarks.ledger.Place.Namespace = ""
			continue
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
	p.underWatermark(func(scope *record.Watermark, created time.Time) { scope.Recorded(p.key.String(), created) })
}

// noteMissing tells the watermark that the object has no record. One that should have one does not hold it back.
func (p *pass) noteMissing() {
	p.underWatermark(func(scope *record.Watermark, created time.Time) {
		if !scope.Covers(created) {
			scope.Missing(p.key.String(), created)
		}
	})
}

// settled tells whether the object is older than the watermark.
func (p *pass) settled() (covered bool) {
	p.underWatermark(func(scope *record.Watermark, created time.Time) { covered = scope.Covers(created) })
	return covered
}

// underWatermark does nothing where an object without a record is nothing special, since no handler may be for it.
func (p *pass) underWatermark(use func(scope *record.Watermark, created time.Time)) {
	if !p.pure.EveryObject() {
		return
	}
	created, err := time.Parse(time.RFC3339, object.Text(p.body, "metadata", "creationTimestamp"))
	if err != nil {
		return // No object from an API server is without one.
	}
	p.watermarks.with(p.key.Namespace, p.settings.Margin, func(scope *record.Watermark) { use(scope, created) })
}
