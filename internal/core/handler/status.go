package handler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// StatusFields returns the status fields that some handler looks at.
func (k Kind) StatusFields() []object.Path {
	var fields []object.Path
	add := func(paths []object.Path) {
		for _, field := range paths {
			if field.Under("status") {
				fields = append(fields, field)
			}
		}
	}
	for _, declared := range k.Handlers {
		add(declared.Fields)
		if declared.Scope != nil {
			add(declared.Scope.Paths())
		}
	}
	return fields
}

// covered returns the names of the status fields that essences contain from now on.
func (k Kind) covered() []string {
	var names []string
	for _, field := range k.StatusFields() {
		names = append(names, field.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// backfillStatus sets the starting point of update handlers that look at status fields that the record does not cover, because no handler
// looked at them when it was written. They start from the current values, which do not count as a change. The result reports whether
// there were any.
func (k Kind) backfillStatus(r record.Record, s State) (record.Record, bool) {
	if s.Deleting {
		return r, false
	}
	changed := false
	for _, declared := range k.Handlers {
		_, kept, found := seenBy(r, declared.ID)
		if declared.Verb != cause.Update || !found || kept.Body == nil || !uncovered(declared.Fields, kept) {
			continue
		}
		entry, has := r.Handlers[declared.ID]
		if entry.Outcome == record.Outside {
			continue
		}
		if !has {
			entry = record.Entry{Cause: string(cause.Update), Outcome: record.Done}
		}
		r, entry.Seen = k.keep(r, k.completed(kept, s.Essence))
		r, changed = r.With(declared.ID, entry), true
	}
	return r, changed
}

func uncovered(fields []object.Path, kept record.Essence) bool {
	return slices.ContainsFunc(fields, func(field object.Path) bool {
		return field.Under("status") && !slices.Contains(kept.Status, field.String())
	})
}

// completed returns a stored essence with the current values of the status fields that it does not cover.
func (k Kind) completed(kept record.Essence, current object.Body) object.Body {
	body := kept.Body
	for _, field := range k.StatusFields() {
		if slices.Contains(kept.Status, field.String()) {
			continue
		}
		if value, found := object.Get(current, field...); found {
			body = object.With(body, field, value)
		} else {
			body = object.Without(body, field)
		}
	}
	return body
}
