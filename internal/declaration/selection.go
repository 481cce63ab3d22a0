package declaration

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/selection"
)

// Selection is what is declared for kinds that are chosen by what discovery tells of them.
type Selection struct {
	Of selection.Selector
	// At declares it for one kind.
	At func(schema.GroupVersionKind) Kind
	// Watched are the kinds whose objects wake its handlers.
	Watched []Watched
}

// Asked returns the selector with what the handlers need.
func (s Selection) Asked(settings Settings) selection.Asked {
	return selection.Asked{Selector: s.Of, Needs: selection.Needs{
		Writes: s.At(schema.GroupVersionKind{}).Writes(), Namespaced: !settings.Namespaces.All(),
	}}
}

// Assign lets selections choose among what is served.
func Assign(selections []Selection, settings Settings, served []selection.Resource, kinds []Kind) selection.Assignment {
	asked := make([]selection.Asked, len(selections))
	for i, one := range selections {
		asked[i] = one.Asked(settings)
	}
	return selection.Assign(asked, served, func(group, kind string) bool {
		return slices.ContainsFunc(kinds, func(one Kind) bool {
			return one.GVK.Group == group && one.GVK.Kind == kind
		})
	})
}

// Join returns an assigned kind with the handlers of all that chose it.
func Join(selections []Selection, assigned selection.Assigned) Kind {
	gvk := schema.GroupVersionKind{Group: assigned.Group, Version: assigned.Version, Kind: assigned.Kind}
	joined := selections[assigned.By[0]].At(gvk)
	for _, by := range assigned.By[1:] {
		next := selections[by].At(gvk)
		joined.Handlers = slices.Concat(joined.Handlers, next.Handlers)
		joined.Observers = slices.Concat(joined.Observers, next.Observers)
		joined.Relations = slices.Concat(joined.Relations, next.Relations)
	}
	return joined
}

// Chosen returns the kinds that selections choose of what is served, and why some choose none.
func Chosen(selections []Selection, settings Settings, served []selection.Resource, handled []Kind) (kinds []Kind, trouble []string) {
	made := Assign(selections, settings, served, handled)
	for _, one := range made.Kinds {
		kinds = append(kinds, Join(selections, one))
	}
	for by, choice := range made.Choices {
		if text := selections[by].Of.Trouble(choice); text != "" {
			trouble = append(trouble, text)
		}
	}
	return kinds, trouble
}
