package handler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// StatusFields are the fields of the status that some handler looks at.
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

// covered are the names of the fields of the status that essences have from now on.
func (k Kind) covered() []string {
	var names []string
	for _, field := range k.StatusFields() {
		names = append(names, field.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// introduced gives update handlers that look at fields of the status of which the record tells nothing, since no handler
// looked at them when it was written, what is there now: that they are there is no change. It tells whether there were any.
func (k Kind) introduced(r record.Record, s State) (record.Record, bool) {
	if s.Deleting {
		return r, false
	}
	told := false
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
		r, told = r.With(declared.ID, entry), true
	}
	return r, told
}

func uncovered(fields []object.Path, kept record.Essence) bool {
	return slices.ContainsFunc(fields, func(field object.Path) bool {
		return field.Under("status") && !slices.Contains(kept.Status, field.String())
	})
}

// completed is a kept essence with what is there now in the fields of the status of which it tells nothing.
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
