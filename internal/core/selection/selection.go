// Package selection chooses kinds by what discovery tells of them.
package selection

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Core is how a selector says the core group, whose own name is empty.
const Core = "core"

// Resource is one served version of a kind.
type Resource struct {
	Group, Version, Plural, Singular, Kind string
	ShortNames, Categories, Verbs          []string
	Namespaced                             bool
}

// String is such as deployments.apps; the core group has no name.
func (r Resource) String() string {
	return strings.TrimSuffix(r.Plural+"."+r.Group, ".")
}

// APIVersion is such as apps/v1.
func (r Resource) APIVersion() string {
	return strings.TrimPrefix(r.Group+"/"+r.Version, "/")
}

// can tells whether all verbs are there.
func (r Resource) can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// called tells whether the name is one of the kind's names.
func (r Resource) called(name string) bool {
	return name == r.Kind || name == r.Plural || name == r.Singular || slices.Contains(r.ShortNames, name)
}

// noise tells of the events of Kubernetes, which are what is said about other objects.
func (r Resource) noise() bool {
	return r.Plural == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// Selector chooses kinds by a name, by a category, or all of them.
type Selector struct {
	name, category string
	everything     bool
	// group is Core for the core group, "" for any; version is "" for the preferred one.
	group, version string
}

// New makes a selector. The name may hold a group and a version: name.group, name.version.group, name.v1.
func New(name, category string, everything bool, group, version string) (Selector, error) {
	s := Selector{name: name, category: category, everything: everything, group: group, version: version}
	given := 0
	for _, is := range []bool{name != "", category != "", everything} {
		if is {
			given++
		}
	}
	if given != 1 {
		return s, errors.New("a selector has one of Name, Category and Everything: give exactly one")
	}
	for _, part := range []struct{ field, text string }{{"Category", category}, {"Group", group}, {"Version", version}} {
		if strings.Trim(part.text, " /*") != part.text || strings.ContainsAny(part.text, " /*") {
			return s, fmt.Errorf("%s %q is none: it has no blanks, slashes and stars; leave it out for any", part.field, part.text)
		}
	}
	return s.parsed()
}

// parsed takes group and version out of the name.
func (s Selector) parsed() (Selector, error) {
	if s.name == "" {
		return s, nil
	}
	name, rest, dotted := strings.Cut(s.name, ".")
	version, group, both := strings.Cut(rest, ".")
	isVersion := regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`).MatchString(version)
	if !isVersion {
		version, group = "", rest
	} else if group == "" {
		group = Core
	}
	if name == "" || strings.ContainsAny(s.name, " /*") || dotted && rest == "" || both && strings.HasSuffix(group, ".") {
		return s, fmt.Errorf("the Name %q is none: give a kind, such as deployments, deployments.apps or deployments.v1.apps; pods.v1 is of the core group", s.name)
	}
	if s.group != "" && group != "" || s.version != "" && version != "" {
		return s, fmt.Errorf("the Name %q says it already: leave Group and Version out, or give the bare name", s.name)
	}
	s.name = name
	if group != "" {
		s.group = group
	}
	if version != "" {
		s.version = version
	}
	return s, nil
}

// String names the selector for people.
func (s Selector) String() string {
	text := "everything"
	switch {
	case s.name != "":
		text = fmt.Sprintf("kinds called %q", s.name)
	case s.category != "":
		text = fmt.Sprintf("kinds of the category %q", s.category)
	}
	if s.group != "" {
		text += " of the group " + s.group
	}
	if s.version != "" {
		text += " in the version " + s.version
	}
	return text
}

// Named tells whether the selector names one kind.
func (s Selector) Named() bool { return s.name != "" }

// Group is the group that the selector asks for, and whether it asks for one. That of the core group is "".
func (s Selector) Group() (name string, asked bool) {
	if s.group == Core {
		return "", true
	}
	return s.group, s.group != ""
}

// Covers tells whether the selector would choose a kind if it were served in some version.
func (s Selector) Covers(r Resource) bool {
	if group, asked := s.Group(); asked && group != r.Group {
		return false
	}
	switch {
	case s.name != "":
		return r.called(s.name)
	case s.category != "":
		return slices.Contains(r.Categories, s.category) && !r.noise()
	default:
		return !r.noise()
	}
}

// Needs is what a kind must have to be chosen.
type Needs struct {
	// Writes: its objects can be changed. Namespaced: they are in namespaces; of a kind with a name it is not asked.
	Writes, Namespaced bool
}

// Choice is what a selector chooses.
type Choice struct {
	// Kinds are chosen, in the order in which they are served, each in one version.
	Kinds []Resource
	// Candidates are the kinds of one name, of which none is chosen. Unwatched cannot be listed or watched, Unwritten not be
	// changed though that is needed.
	Candidates, Unwatched, Unwritten []Resource
}

// Choose chooses among what is served. The versions of a group come in the order in which the API server prefers them.
func (s Selector) Choose(served []Resource, needs Needs) Choice {
	var made Choice
	seen := map[string]bool{}
	for _, r := range served {
		if !s.Covers(r) || seen[r.String()] || s.version != "" && s.version != r.Version {
			continue
		}
		seen[r.String()] = true
		switch {
		case !s.Named() && needs.Namespaced && !r.Namespaced:
		case !r.can("list", "watch"):
			made.Unwatched = append(made.Unwatched, r)
		case needs.Writes && !r.can("patch"):
			made.Unwritten = append(made.Unwritten, r)
		default:
			made.Kinds = append(made.Kinds, r)
		}
	}
	if s.Named() && len(made.Kinds) > 1 {
		made.Kinds, made.Candidates = foremost(made.Kinds)
	}
	return made
}

// foremost is the one of the core group, if there is one.
func foremost(called []Resource) (kinds, candidates []Resource) {
	for _, r := range called {
		if r.Group == "" {
			kinds = append(kinds, r)
		}
	}
	if len(kinds) == 1 {
		return kinds, nil
	}
	return nil, called
}

// Names lists kinds for people.
func Names(of []Resource) string {
	names := make([]string, len(of))
	for i, r := range of {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// Trouble says why a selector with a name has chosen nothing, and what to do; "" where it has, and where there is no name.
func (s Selector) Trouble(choice Choice) string {
	switch {
	case !s.Named() || len(choice.Kinds) > 0:
		return ""
	case len(choice.Candidates) > 0:
		return fmt.Sprintf("%s are several, so none of them is served: %s; add the group to the name, as in %q",
			s, Names(choice.Candidates), choice.Candidates[0].qualified())
	case len(choice.Unwritten) > 0:
		return fmt.Sprintf("%s cannot be patched, which the handlers need: %s", s, Names(choice.Unwritten))
	case len(choice.Unwatched) > 0:
		return fmt.Sprintf("%s cannot be listed and watched: %s", s, Names(choice.Unwatched))
	default:
		return fmt.Sprintf("waiting for %s to be served: is the CustomResourceDefinition installed?", s)
	}
}

// qualified is the name with its group.
func (r Resource) qualified() string {
	if r.Group == "" {
		return r.Plural + "." + Core
	}
	return r.String()
}
