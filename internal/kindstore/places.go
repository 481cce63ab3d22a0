package kindstore

import (
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// places knows in which carriers the records of one kind may be: see record.Places. They have the scopes of the watermarks.
type places struct {
	// loaded: the store can be read and written. stored is what it holds, by scope; seen tells of each scope whether there are records.
	loaded bool
	stored map[string]record.Places
	seen   map[string]bool
	// unmoved are the scopes of objects that have a record in the other carrier, by uid.
	unmoved map[string]string
	// changed: the preferred carrier has changed since the first list, so not each record has been looked at.
	changed bool
}

// known returns the scopes of which anything is known.
func (l *places) known() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(l.stored)), maps.Keys(l.seen))
}

// of returns the places that hold for a scope. Where nothing is stored of a namespace, it is what is stored of all. Of all namespaces,
// each that has been a scope of its own counts too.
func (l *places) of(scope string, preferred record.Carrier) record.Places {
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

// found notes where the record of an object is.
func (l *places) found(scope, uid string, at Found) {
	if !l.loaded {
		return
	}
	if l.seen == nil {
		l.seen, l.unmoved = map[string]bool{}, map[string]string{}
	}
	l.seen[scope] = l.seen[scope] || at.Found
	if delete(l.unmoved, uid); at.Unmoved {
		l.unmoved[uid] = scope
	}
}

// forget removes what is known of a namespace that is gone. It reports whether there was anything in the store.
func (l *places) forget(namespace string) (stored bool) {
	_, stored = l.stored[namespace]
	delete(l.stored, namespace)
	delete(l.seen, namespace)
	return stored
}

// next returns what is to be stored of a scope before the first record is written to a carrier. It reports whether that differs from what is stored.
func (l *places) next(scope string, to record.Carrier, hidden bool) (next record.Places, differs bool) {
	before, own := l.stored[scope]
	next = l.of(scope, to).Moved(to, hidden)
	return next, l.loaded && len(next) > 0 && (!own || !slices.Equal(before, next))
}

// endable returns the scopes in which all records are in the status now, with what to store of them.
func (l *places) endable(steady func(scope string) bool) map[string]record.Places {
	if !l.loaded || l.changed {
		return nil
	}
	moved := record.Places{record.Status}
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

// keep takes over what was stored.
func (l *places) keep(stored map[string]record.Places) {
	for scope, of := range stored {
		if delete(l.stored, scope); of != nil {
			l.stored[scope] = of
		}
	}
}
