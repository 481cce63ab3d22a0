package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// filterContext is what filters need to know of the kind that they are for.
type filterContext struct {
	goType reflect.Type
	read   func(object.Body) (client.Object, error)
}

// Labels is an option of a handler: it is only for objects whose label matches. With several filters all must hold.
//
// An object that none of the kind's handlers is for has no record and no finalizer, and nothing is told of it. When one starts
// to match, that is its creation in the eyes of the handler: a create handler runs, unless it has for this very object; an
// update handler starts from what is there; a delete handler adds the finalizer. When one does not match any more, the
// handler is not called; the finalizer goes, unless a delete handler has already begun. Objects that had a record before
// a create handler was declared count as created for it.
func Labels(key string, match Match) Option {
	return filterOption("Labels", func(filterContext) (filter.Filter, error) { return metadataFilter("labels", key, match) })
}

// Annotations is Labels for annotations. The bookkeeping of kubectl and of operators is not there to be matched.
func Annotations(key string, match Match) Option {
	return filterOption("Annotations", func(filterContext) (filter.Filter, error) { return metadataFilter("annotations", key, match) })
}

func metadataFilter(stanza, key string, match Match) (filter.Filter, error) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return nil, fmt.Errorf("%q is no key of %s: %s", key, stanza, strings.Join(problems, ", "))
	}
	plain, err := match.plain()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if want, is := plain.Want(); is && reflect.TypeOf(want) != reflect.TypeFor[string]() {
		return nil, fmt.Errorf("%s: the values of %s are strings, and %v is none", key, stanza, want)
	}
	return filter.Field{Path: object.Path{"metadata", stanza, key}, Match: plain}, nil
}

// Field is an option of a handler: what it looks at, such as spec.size or metadata.labels. Keys with dots go in
// brackets: metadata.labels[app.kubernetes.io/name]. Several are joined. A change of anything else neither runs the
// handler nor is written down. The default is everything but the status and the bookkeeping in the metadata.
//
// With a match it also is a condition. An update handler runs where the field matches before or after the change; with From
// and To, where what it was and what it becomes match: From(Equals("trial")), To(Present()). A change that it does not
// answer counts as seen. Since what a field was before must be known, objects are recorded whatever the field's value;
// what of very large objects and of Secrets is not kept matches. All other handlers are only for objects whose field
// matches, as with Labels.
//
// Inside All, Any, Not and None it is a condition on the object as it is, for every handler, and not what the handler looks
// at. Delete handlers take no fields: one that changes would let go of what is to be cleaned up.
func Field(path string, match ...Match) Option {
	return Option{
		name: "Field",
		handler: func(settings *handlerSettings) error {
			parsed, err := object.ParsePath(path)
			if err != nil {
				return fmt.Errorf("option Field: %w", err)
			}
			settings.fields = append(settings.fields, parsed)
			if len(match) == 0 {
				return nil
			}
			change, err := joined(match)
			if err != nil {
				return fmt.Errorf("option Field: %s: %w", path, err)
			}
			change.Path = parsed
			settings.changes = append(settings.changes, change)
			return nil
		},
		filter: func(filterContext) (filter.Filter, error) {
			parsed, err := object.ParsePath(path)
			if err != nil {
				return nil, err
			}
			if len(match) != 1 {
				return nil, fmt.Errorf("%s: inside of another filter it takes one match", path)
			}
			plain, err := match[0].plain()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return filter.Field{Path: parsed, Match: plain}, nil
		},
	}
}

// When is an option of a handler: it is only for objects of which the function holds, as with Labels. T is the type that the
// kind was declared with. The object has its namespace, name, uid and essence, and of the status what some handler of the
// kind names with Field. The function must give the same answer for the same object. A panic leaves the object
// alone, and is told and tried again, less and less often; other objects go on.
func When[T any](test func(*T) bool) Option {
	return filterOption("When", func(in filterContext) (filter.Filter, error) {
		if test == nil {
			return nil, errors.New("the function is nil")
		}
		if wanted := reflect.TypeFor[T](); wanted != in.goType {
			return nil, fmt.Errorf("its function takes a *%s, but the handler's kind was declared as %s: give it a function of *%s", wanted, in.goType, in.goType)
		}
		return filter.When(func(body object.Body) bool {
			read, err := in.read(body)
			if err != nil {
				panic(err) // Who filters cannot go on without an answer.
			}
			return test(typed[T](read))
		}), nil
	})
}

// All is an option of a handler: it is only for objects for which all of the filters hold. Filters are Labels, Annotations,
// When, Field with a match, and what joins them.
func All(filters ...Option) Option {
	return joinedOption("All", filters, func(all filter.All) filter.Filter { return all })
}

// Any is All, but some filter has to hold.
func Any(filters ...Option) Option {
	return joinedOption("Any", filters, func(all filter.All) filter.Filter { return filter.Any(all) })
}

// Not is an option of a handler: it is only for objects for which the filter does not hold.
func Not(one Option) Option {
	return joinedOption("Not", []Option{one}, func(all filter.All) filter.Filter { return filter.Not{Filter: all} })
}

// None is an option of a handler: it is only for objects for which none of the filters holds.
func None(filters ...Option) Option {
	return joinedOption("None", filters, func(all filter.All) filter.Filter { return filter.Not{Filter: filter.Any(all)} })
}

func joinedOption(name string, filters []Option, join func(filter.All) filter.Filter) Option {
	return filterOption(name, func(in filterContext) (filter.Filter, error) {
		if len(filters) == 0 {
			return nil, errors.New("it joins no filters: give it some, or leave it out")
		}
		var all filter.All
		for _, one := range filters {
			if one.filter == nil {
				return nil, fmt.Errorf("%s is no filter: filters are Labels, Annotations, Field, When, All, Any, Not and None", one.name)
			}
			built, err := one.filter(in)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			all = append(all, built)
		}
		return join(all), nil
	})
}

func filterOption(name string, build func(filterContext) (filter.Filter, error)) Option {
	return Option{
		name: name, filter: build,
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

// declaration is what the options say of a handler. The error tells of those that do not go together.
func (s handlerSettings) declaration(verb cause.Cause, id string) (handler.Declaration, error) {
	declared := handler.Declaration{
		ID: id, Verb: verb, Fields: s.fields, AtCreation: s.atCreation, Optional: s.optional, AlsoDeleting: s.alsoDeleting,
		Owns: s.owns,
	}
	var wrong error
	if s.atCreation && verb != cause.Update {
		wrong = errors.New("option AlsoAtCreation is for OnField and OnUpdate, which do not run at creation by themselves: leave it out")
	}
	scope := slices.Clone(s.scope)
	for _, change := range s.changes {
		switch {
		case verb == cause.Update:
			declared.Changes = append(declared.Changes, change)
		case change.Either.Unset():
			wrong = errors.Join(wrong, fmt.Errorf("option Field: %s: From and To are about a change, which only update handlers answer", change.Path))
		default:
			scope = append(scope, filter.Field{Path: change.Path, Match: change.Either})
		}
	}
	if len(scope) > 0 {
		declared.Scope = filter.All(scope)
	}
	return declared, errors.Join(wrong, contradictions(declared))
}

// contradictions finds conditions on one value that no object can meet, as far as that is easily told.
func contradictions(declared handler.Declaration) error {
	var wrong error
	leaves := conjuncts(declared.Scope)
	for i, one := range leaves {
		for _, other := range leaves[:i] {
			if slices.Equal(one.Path, other.Path) && one.Match.Excludes(other.Match) {
				wrong = errors.Join(wrong, fmt.Errorf("no object matches the two conditions on %s, which both have to hold: join them with Any, or leave one out", one.Path))
			}
		}
	}
	for i, one := range declared.Changes {
		for _, other := range declared.Changes[:i] {
			if slices.Equal(one.Path, other.Path) && (one.From.Excludes(other.From) || one.To.Excludes(other.To)) {
				wrong = errors.Join(wrong, fmt.Errorf("no change matches the two conditions on %s, which both have to hold: leave one out", one.Path))
			}
		}
	}
	return wrong
}

// conjuncts are the conditions on single values that all have to hold.
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
