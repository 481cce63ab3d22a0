package selection

// Asked is a selector, and what its handlers need of a kind.
type Asked struct {
	Selector
	Needs
}

// Assigned is a kind, and the selectors that it is served for, by their numbers.
type Assigned struct {
	Resource
	By []int
}

// Left is a kind that a selector chooses and that is not served for it: it is handled otherwise, or in another version for
// the sake of a selector that was declared before.
type Left struct {
	Resource
	By int
	// Other is the version in which it is served; "" where it was declared by itself.
	Other string
}

// Assignment says which kinds are served, and for which selectors.
type Assignment struct {
	Kinds []Assigned
	Left  []Left
	// Choices are what each selector chooses.
	Choices []Choice
}

// Assign lets selectors choose. A kind is served once, in one version, for all that choose it in that version; what is
// taken already is served for none.
func Assign(asked []Asked, served []Resource, taken func(group, kind string) bool) Assignment {
	var made Assignment
	at := map[[2]string]int{}
	for by, one := range asked {
		choice := one.Choose(served, one.Needs)
		made.Choices = append(made.Choices, choice)
		for _, chosen := range choice.Kinds {
			name := [2]string{chosen.Group, chosen.Kind}
			i, known := at[name]
			switch {
			case taken(chosen.Group, chosen.Kind):
				made.Left = append(made.Left, Left{Resource: chosen, By: by})
			case !known:
				at[name] = len(made.Kinds)
				made.Kinds = append(made.Kinds, Assigned{Resource: chosen, By: []int{by}})
			case made.Kinds[i].Version != chosen.Version:
				made.Left = append(made.Left, Left{Resource: chosen, By: by, Other: made.Kinds[i].Version})
			default:
				made.Kinds[i].By = append(made.Kinds[i].By, by)
			}
		}
	}
	return made
}
