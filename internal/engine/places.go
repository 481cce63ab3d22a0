package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// places knows in which carriers the records of one kind may be: see record.Places. They are stored for the same scopes as watermarks.
type places struct {
	watermarks *watermarks
	// fixed: the kind is built in, so its records never move.
	fixed bool

	// storing has an element while something is stored, so that several workers do not store the same. A request can take long, so it is no mutex.
	storing chan struct{}

	mu sync.Mutex
	// loaded: the store can be read and written. stored is what it holds, by scope; seen tells of each scope whether there are records.
	loaded bool
	stored map[string]record.Places
	seen   map[string]bool
	// unmoved are the scopes of objects that have a record in the other carrier, by uid.
	unmoved map[string]string
	// reshaped: the preferred carrier has changed since the first list, so not each record has been looked at.
	reshaped bool
}

// load takes up what is stored.
func (l *places) load(stored map[string]record.Places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded, l.stored = !l.fixed, stored
}

// known are the scopes of which anything is known.
func (l *places) known() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.AppendSeq(slices.Collect(maps.Keys(l.stored)), maps.Keys(l.seen))
	slices.Sort(known)
	return slices.Compact(known)
}

// former tells when the record of an object is read that is not in the preferred carrier.
func (l *places) former(namespace string, preferred record.Carrier) record.Former {
	scope := l.watermarks.scopeOf(namespace)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ofLocked(scope, preferred).Former(preferred)
}

// ofLocked returns the places that hold for a scope. Where nothing is stored of a namespace, it is what is stored of all. Of all namespaces,
// each that has been a scope of its own counts too.
func (l *places) ofLocked(scope string, preferred record.Carrier) record.Places {
	if own, stored := l.stored[scope]; stored && scope != "" {
		return own
	}
	widest := l.stored[""]
	if scope != "" {
		return widest
	}
	for _, of := range slices.Sorted(maps.Keys(l.stored)) {
		if next := l.stored[of]; widest == nil || next.Former(preferred) > widest.Former(preferred) {
			widest = next
		}
	}
	return widest
}

// seenRecord is where the record of an object is. The zero value means that the object has none.
type seenRecord struct {
	// found means that it was read, unmoved that it may be in the other carrier.
	found, unmoved bool
}

// note notes where the record of an object is.
func (l *places) note(namespace, uid string, seen seenRecord) {
	scope := l.watermarks.scopeOf(namespace)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		return
	}
	if l.seen == nil {
		l.seen, l.unmoved = map[string]bool{}, map[string]string{}
	}
	l.seen[scope] = l.seen[scope] || seen.found
	if delete(l.unmoved, uid); seen.unmoved {
		l.unmoved[uid] = scope
	}
}

// giveUp stores nothing from now on.
func (l *places) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = false
}

// reshape notes that the preferred carrier has changed. No pass has looked into the new one, so only a later process can tell when all records
// have moved.
func (l *places) reshape() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reshaped = true
}

// gone forgets an object that does not exist any more.
func (l *places) gone(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unmoved, uid)
}

// forget takes out what is known of a namespace that is gone. It reports whether there was anything in the store.
func (l *places) forget(namespace string) (stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, stored = l.stored[namespace]
	delete(l.stored, namespace)
	delete(l.seen, namespace)
	return stored
}

// begin stores that records go to the carrier of this shape from now on, before the first one does.
func (l *places) begin(ctx context.Context, namespace string, shape *shape) error {
	scope := l.watermarks.scopeOf(namespace)
	select {
	case l.storing <- struct{}{}:
		defer func() { <-l.storing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	before, own := l.stored[scope]
	to := shape.description.Carrier
	next := l.ofLocked(scope, to).Moved(to, shape.hidesRecords)
	is := l.loaded && len(next) > 0 && (!own || !slices.Equal(before, next))
	l.mu.Unlock()
	if !is {
		return nil
	}
	return l.store(ctx, map[string]record.Places{scope: next})
}

// endable returns the scopes in which all records are in the status now, with what to store of them.
func (l *places) endable(steady func(scope string) bool) map[string]record.Places {
	moved := record.Places{record.Status}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded || l.reshaped {
		return nil
	}
	unmoved := slices.Collect(maps.Values(l.unmoved))
	end := map[string]record.Places{}
	for scope, recorded := range l.seen {
		if !recorded || slices.Equal(l.stored[scope], moved) || slices.Contains(unmoved, scope) || !steady(scope) {
			continue
		}
		end[scope] = moved
		for former := range l.stored {
			if scope == "" && former != "" { // It is in all namespaces now.
				end[former] = nil
			}
		}
	}
	return end
}

// store stores places, and then uses them.
func (l *places) store(ctx context.Context, places map[string]record.Places) error {
	if err := l.watermarks.store.WritePlaces(ctx, l.watermarks.resource, places); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for scope, of := range places {
		if delete(l.stored, scope); of != nil {
			l.stored[scope] = of
		}
	}
	return nil
}

// endMoves stores for each scope in which all records are in the status that annotations do not count any more.
func (k *keeper) endMoves(ctx context.Context) {
	if !k.startup.AllDone() || k.shapes.now().description.Carrier != record.Status {
		return
	}
	end := k.places.endable(func(scope string) bool {
		return k.watermarks.health.Steady(k.watermarks.resource, scope, steadyFor)
	})
	if len(end) == 0 {
		return
	}
	if err := k.places.store(ctx, end); err != nil {
		k.reports.Log.Warn("cannot store that all records are in the status, records that others write into annotations can be taken for those of an earlier release",
			"error", err)
	}
}

// beginMove stores where the record is going to be. Without the right to, it is written nevertheless.
func (p *pass) beginMove(ctx context.Context) error {
	err := p.places.begin(ctx, p.key.Namespace, p.shape)
	if apierrors.IsForbidden(err) {
		p.places.giveUp()
		p.report.Log.Warn("cannot store where records are, a later release that keeps them elsewhere will not use what steps and effects returned", "error", err)
		return nil
	}
	return err
}
