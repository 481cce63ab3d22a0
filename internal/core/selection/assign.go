package selection

// Asked is a selector together with what its handlers need from a kind.
type Asked struct {
	Selector
	Needs
}

// Assigned is a kind together with the indexes of the selectors that it is served for.
type Assigned struct {
	Resource
	By []int
}

// Left is a kind that a selector chooses but that is not served for it: the kind has its own registration, or an earlier
// selector has chosen another version of it.
type Left struct {
	Resource
	By int
	// Other is the version in which the kind is served, or "" if the kind has its own registration.
	Other string
}

// Assignment lists the kinds to serve and the selectors that each is served for.
type Assignment struct {
	Kinds []Assigned
	Left  []Left
	// Choices holds the choice of each selector.
	Choices []Choice
}

// Assign lets the selectors choose among the served kinds. Each kind is served once, in one version, for all selectors that
// choose that version. A kind that is already taken is not served for any selector.
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
