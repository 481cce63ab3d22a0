package engine

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// moveEvery is how often a watermark may be written, at most.
const moveEvery = time.Minute

// watermarks keeps the watermarks of one kind, one for each scope that is served.
type watermarks struct {
	ledger kube.Ledger
	// resource names the kind in the ledger; namespaces are the ones served, none for all.
	resource   string
	namespaces []string

	mu     sync.Mutex
	scopes map[string]*record.Watermark
}

// scopeKey names a scope in the ledger. A namespace's name has no underscore, so no two scopes share a key.
func (w *watermarks) scopeKey(namespace string) string {
	if len(w.namespaces) == 0 || namespace == "" {
		return w.resource
	}
	return w.resource + "_" + namespace
}

// load reads the watermarks before the first object is looked at. That of all namespaces holds for each of them, but
// not the reverse: a scope that grows starts without one.
func (w *watermarks) load(ctx context.Context, margin time.Duration) error {
	w.scopes = map[string]*record.Watermark{}
	for _, namespace := range append([]string{""}, w.namespaces...) {
		key := w.scopeKey(namespace)
		scope := &record.Watermark{Margin: margin}
		w.scopes[key] = scope
		if !w.ledger.Kept() {
			continue
		}
		at, err := w.ledger.Read(ctx, key, w.resource)
		if err != nil {
			return err
		}
		scope.At = at
	}
	return nil
}

// with gives the watermark that an object falls under.
func (w *watermarks) with(namespace string, use func(*record.Watermark)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if scope, kept := w.scopes[w.scopeKey(namespace)]; kept {
		use(scope)
	}
}

// move stores the watermarks that have moved, until the context ends.
func (k *keeper) moveWatermarks(ctx context.Context) {
	if !k.watermarks.ledger.Kept() || !k.pure.EveryObject() {
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
		for key := range k.watermarks.scopes {
			k.moveWatermark(ctx, key)
		}
	}
}

func (k *keeper) moveWatermark(ctx context.Context, key string) {
	k.watermarks.mu.Lock()
	scope := k.watermarks.scopes[key]
	next, moved := scope.Next(time.Now())
	k.watermarks.mu.Unlock()
	if !moved || !k.startup.over() {
		return
	}
	if err := k.watermarks.ledger.Write(ctx, key, next); err != nil {
		k.log.Warn("the watermark cannot be stored: an object whose record is lost while the operator is down will count as new",
			"error", err)
		return
	}
	k.watermarks.mu.Lock()
	defer k.watermarks.mu.Unlock()
	scope.Moved(next)
}

// loadWatermarks reads what the ledger holds, however long that takes; without the right to read it there are none.
func (k *keeper) loadWatermarks(ctx context.Context) error {
	if !k.pure.EveryObject() {
		return nil
	}
	if !k.watermarks.ledger.Kept() {
		k.log.Debug("no namespace is known to keep watermarks in: an object whose record is lost while the operator is down will count as new")
	}
	retry := time.NewTicker(lookEvery)
	defer retry.Stop()
	for {
		err := k.watermarks.load(ctx, k.settings.Margin)
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
	p.watermarks.with(p.key.Namespace, func(scope *record.Watermark) { use(scope, created) })
}
