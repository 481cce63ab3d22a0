package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// filterContext describes the kind that filters are built for.
type filterContext struct {
	goType reflect.Type
	read   func(object.Body) (client.Object, error)
}

// Labels selects objects by the value of one label: see Filter.
func Labels(key string, match Match) Filter {
	return filterOption("Labels", func(filterContext) (filter.Filter, error) { return metadataFilter("labels", key, match) })
}

// Annotations selects objects by the value of one annotation: see Filter. Annotations of kubectl and of operators never
// match.
func Annotations(key string, match Match) Filter {
	return filterOption("Annotations", func(filterContext) (filter.Filter, error) { return metadataFilter("annotations", key, match) })
}

func metadataFilter(stanza, key string, match Match) (filter.Filter, error) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return nil, fmt.Errorf("invalid key %q of %s: %s", key, stanza, strings.Join(problems, ", "))
	}
	if err := match.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if want, ok := match.match.Want(); ok && reflect.TypeOf(want) != reflect.TypeFor[string]() {
		return nil, fmt.Errorf("%s: %s values must be strings, got %v", key, stanza, want)
	}
	return filter.Field{Path: object.Path{"metadata", stanza, key}, Match: match.match}, nil
}

// Fields sets what a handler compares, such as spec.size or metadata.labels. Put a key that contains dots in brackets:
// metadata.labels[app.kubernetes.io/name]. Changes of other fields do not trigger the handler, and are not recorded.
// Several options add up. The default is the essence of the object: everything except the status, the bookkeeping in
// the metadata, and the annotations of kubectl and of operators.
//
// OnDelete, OnEvent and Daemon do not take it, because they compare no fields.
func Fields(paths ...string) FieldsOption {
	return option{name: "Fields", handler: func(settings *handlerSettings) error {
		if len(paths) == 0 {
			return errors.New("option Fields: must have at least one field, such as spec.size, got none")
		}
		for _, path := range paths {
			parsed, err := object.ParsePath(path)
			if err != nil {
				return fmt.Errorf("option Fields: %w", err)
			}
			settings.fields = append(settings.fields, parsed)
		}
		return nil
	}}
}

// FieldMatches selects objects by the current value of one field: see Filter. It does not change what the handler
// compares: see Fields. It is not allowed for OnDelete and OnEvent. When a field changes, an object could stop matching
// its delete handler, and would not be cleaned up.
func FieldMatches(path string, match Match) Filter {
	return filterOption("FieldMatches", func(filterContext) (filter.Filter, error) {
		parsed, err := object.ParsePath(path)
		if err != nil {
			return nil, err
		}
		if err := match.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return filter.Field{Path: parsed, Match: match.match}, nil
	})
}

// FieldChanges makes an update handler compare a field, as Fields does, and run only for some of its changes. From and
// To select by the value before and after the change. FromOrTo selects changes in which either value matches:
//
//	einmal.FieldChanges("spec.plan", einmal.From(einmal.Equals("trial")), einmal.To(einmal.Present()))
//
// Other changes count as seen. Because the value before a change must be known, objects are recorded whatever the value
// of the field is. Values that are not recorded, those of very large objects and of Secrets, always match.
func FieldChanges(path string, transitions ...Transition) UpdateOption {
	return option{name: "FieldChanges", handler: func(settings *handlerSettings) error {
		parsed, err := object.ParsePath(path)
		if err != nil {
			return fmt.Errorf("option FieldChanges: %w", err)
		}
		settings.fields = append(settings.fields, parsed)
		if len(transitions) == 0 {
			return nil
		}
		change, err := joined(transitions)
		if err != nil {
			return fmt.Errorf("option FieldChanges: %s: %w", path, err)
		}
		change.Path = parsed
		settings.changes = append(settings.changes, change)
		return nil
	}}
}

// When selects objects by a function: see Filter. T must be the type that the kind was declared with. The object has
// its namespace, name, uid and essence, and those fields of the status that a handler of the kind compares with Fields.
// The function must return the same result for the same object.
//
// If it panics, the object is not handled. This is logged and retried with increasing delays. Other objects are not
// affected.
func When[T any](test func(*T) bool) Filter {
	return filterOption("When", func(in filterContext) (filter.Filter, error) {
		if test == nil {
			return nil, errors.New("the function is nil")
		}
		if wanted := reflect.TypeFor[T](); wanted != in.goType {
			return nil, fmt.Errorf("the function takes a *%s, but the kind was declared with type %s: use a function that takes a *%s", wanted, in.goType, in.goType)
		}
		return filter.When(func(body object.Body) bool {
			read, err := in.read(body)
			if err != nil {
				panic(err) // A filter cannot continue without an answer.
			}
			return test(typed[T](read))
		}), nil
	})
}

// All selects objects that match every filter.
func All(filters ...Filter) Filter {
	return joinedOption("All", filters, func(all filter.All) filter.Filter { return all })
}

// Any selects objects that match at least one filter.
func Any(filters ...Filter) Filter {
	return joinedOption("Any", filters, func(all filter.All) filter.Filter { return filter.Any(all) })
}

// Not selects objects that do not match the filter.
func Not(one Filter) Filter {
	return joinedOption("Not", []Filter{one}, func(all filter.All) filter.Filter { return filter.Not{Filter: all} })
}

// None selects objects that match none of the filters.
func None(filters ...Filter) Filter {
	return joinedOption("None", filters, func(all filter.All) filter.Filter { return filter.Not{Filter: filter.Any(all)} })
}

func joinedOption(name string, filters []Filter, join func(filter.All) filter.Filter) Filter {
	return filterOption(name, func(in filterContext) (filter.Filter, error) {
		if len(filters) == 0 {
			return nil, errors.New("must have at least one filter, got none")
		}
		var all filter.All
		for i, one := range filters {
			if one == nil {
				return nil, fmt.Errorf("filter %d is nil: leave it out", i+1)
			}
			built, err := one.asFilter().build(in)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.asFilter().name, err)
			}
			all = append(all, built)
		}
		return join(all), nil
	})
}

func filterOption(name string, build func(filterContext) (filter.Filter, error)) Filter {
	return option{
		name: name, build: build,
		handler: func(settings *handlerSettings) error {
			built, err := build(settings.context)
			if err != nil {
				return fmt.Errorf("option %s: %w", name, err)
			}
			settings.scope = append(settings.scope, built)
			return nil
		},
	}
}

// declaration returns what the options declare. The error lists options that contradict each other.
func (s *handlerSettings) declaration(verb cause.Cause, id string) (handler.Declaration, error) {
	declared := handler.Declaration{
		ID: id, Verb: verb, Fields: s.fields, AtCreation: s.atCreation, Optional: s.noFinalizer, AlsoDeleting: s.alsoDeleting,
		Owns: s.owns,
	}
	declared.Changes = s.changes
	if len(s.scope) > 0 {
		declared.Scope = filter.All(s.scope)
	}
	return declared, contradictions(declared)
}

// contradictions returns an error if two conditions on one value can never hold together. It finds the obvious cases
// only.
func contradictions(declared handler.Declaration) error {
	var wrong error
	leaves := conjuncts(declared.Scope)
	for i, one := range leaves {
		for _, other := range leaves[:i] {
			if slices.Equal(one.Path, other.Path) && one.Match.Excludes(other.Match) {
				wrong = errors.Join(wrong, fmt.Errorf("no object can match both conditions on %s: combine them with Any, or remove one", one.Path))
			}
		}
	}
	for i, one := range declared.Changes {
		for _, other := range declared.Changes[:i] {
			if slices.Equal(one.Path, other.Path) && (one.From.Excludes(other.From) || one.To.Excludes(other.To)) {
				wrong = errors.Join(wrong, fmt.Errorf("no change can match both conditions on %s: remove one", one.Path))
			}
		}
	}
	return wrong
}

// conjuncts returns the conditions on single values that all have to hold.
func conjuncts(of filter.Filter) []filter.Field {
	switch of := of.(type) {
	case filter.Field:
		return []filter.Field{of}
	case filter.All:
		var found []filter.Field
		for _, one := range of {
			found = append(found, conjuncts(one)...)
		}
		return found
	default:
		return nil
	}
}

// Match is a condition on one value of a label, an annotation or a field. Present, Absent, Equals and Satisfies create
// one.
type Match struct {
	match filter.Match
	err   error
}

// Transition is a condition on the change of a field: see FieldChanges. From, To and FromOrTo create one.
type Transition struct {
	match Match
	end   end
}

// end says which value of a change a Transition tests.
type end int

const (
	either end = iota
	from
	to
)

var errNoMatch = errors.New("has no condition: use Present, Absent, Equals or Satisfies")

// Present matches if there is a value, even an empty one. In a Go type, a field without omitempty always has a value.
func Present() Match { return Match{match: filter.Present()} }

// Absent matches if there is no value. An empty value does not match.
func Absent() Match { return Match{match: filter.Absent()} }

// Equals matches a value that is equal as JSON: 1 equals 1.0, and a struct equals the map that it is written as. A
// value that cannot be written as JSON is an error of Run.
func Equals(value any) Match {
	text, err := json.Marshal(value)
	if err != nil {
		return Match{err: fmt.Errorf("Equals: marshal %T: %w", value, err)}
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return Match{err: fmt.Errorf("Equals: unmarshal the JSON of %T: %w", value, err)}
	}
	return Match{match: filter.Equals(decoded)}
}

// Satisfies matches if the function returns true. The function gets the value as decoded JSON (string, bool, int64,
// float64, []any, map[string]any, or nil for null), and whether it was found. A missing value is nil and not found. The
// function must return the same result for the same value, and must not modify it.
//
// If it panics, the object is not handled. This is logged and retried with increasing delays. Other objects are not
// affected.
func Satisfies(test func(value any, found bool) bool) Match {
	if test == nil {
		return Match{err: errors.New("Satisfies: the function is nil")}
	}
	return Match{match: filter.Func(test)}
}

// From matches the value of the field before the change.
func From(match Match) Transition { return Transition{match: match, end: from} }

// To matches the value of the field after the change.
func To(match Match) Transition { return Transition{match: match, end: to} }

// FromOrTo matches if the value before the change matches, or the value after it.
func FromOrTo(match Match) Transition { return Transition{match: match, end: either} }

// check returns an error if the match is invalid.
func (m Match) check() error {
	if m.err == nil && m.match.Unset() {
		return errNoMatch
	}
	return m.err
}

// joined combines the transitions of one field.
func joined(transitions []Transition) (filter.Change, error) {
	var change filter.Change
	ends := map[end]*filter.Match{either: &change.Either, from: &change.From, to: &change.To}
	for _, one := range transitions {
		if err := one.match.check(); err != nil {
			return change, err
		}
		if !ends[one.end].Unset() {
			return change, errors.New("has two conditions on the same value of the change: combine them in one Satisfies")
		}
		*ends[one.end] = one.match.match
	}
	if !change.Either.Unset() && len(transitions) > 1 {
		return change, errors.New("has FromOrTo together with From or To: use either FromOrTo, or From and To")
	}
	if change.From.Same(change.To) {
		return change, errors.New("From and To match the same single value, which is never a change")
	}
	return change, nil
}
