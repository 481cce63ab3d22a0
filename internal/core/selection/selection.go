// Package selection chooses kinds based on API discovery.
package selection

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Core is the name that selectors use for the core group, whose actual name is empty.
const Core = "core"

// Resource is one served version of a kind.
type Resource struct {
	Group, Version, Plural, Singular, Kind string
	ShortNames, Categories, Verbs          []string
	Namespaced                             bool
}

// String returns a name such as deployments.apps. In the core group it is the plural alone.
func (r Resource) String() string {
	return strings.TrimSuffix(r.Plural+"."+r.Group, ".")
}

// APIVersion returns a text such as apps/v1.
func (r Resource) APIVersion() string {
	return strings.TrimPrefix(r.Group+"/"+r.Version, "/")
}

// can reports whether the kind supports all of the verbs.
func (r Resource) can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// called reports whether this is one of the names of the kind.
func (r Resource) called(name string) bool {
	return name == r.Kind || name == r.Plural || name == r.Singular || slices.Contains(r.ShortNames, name)
}

// noise reports whether the kind is Kubernetes events, which only describe other objects.
func (r Resource) noise() bool {
	return r.Plural == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// Selector chooses kinds by name or by category, or chooses all kinds.
type Selector struct {
	name, category string
	everything     bool
	// group is Core for the core group and "" for any group. version is "" for the preferred version.
	group, version string
}

// New returns a selector. The name may contain a version and a group: name.group, name.version.group, name.v1.
func New(name, category string, everything bool, group, version string) (Selector, error) {
	s := Selector{name: name, category: category, everything: everything, group: group, version: version}
	given := 0
	for _, is := range []bool{name != "", category != "", everything} {
		if is {
			given++
		}
	}
	if given != 1 {
		return s, errors.New("a selector must set exactly one of Name, Category and Everything")
	}
	for _, part := range []struct{ field, text string }{{"Category", category}, {"Group", group}, {"Version", version}} {
		if strings.Trim(part.text, " /*") != part.text || strings.ContainsAny(part.text, " /*") {
			return s, fmt.Errorf("invalid %s %q: blanks, slashes and stars are not allowed; leave it empty to match any", part.field, part.text)
		}
	}
	return s.parsed()
}

// parsed returns the selector with the group and version split off the name.
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
		return s, fmt.Errorf("invalid Name %q: use a form such as deployments, deployments.apps or deployments.v1.apps; pods.v1 is in the core group", s.name)
	}
	if s.group != "" && group != "" || s.version != "" && version != "" {
		return s, fmt.Errorf("the Name %q already contains a group or version: leave Group and Version empty, or use the bare name", s.name)
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

// String describes the selector for people.
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

// Named reports whether the selector names one kind.
func (s Selector) Named() bool { return s.name != "" }

// Group returns the group that the selector asks for and whether it asks for one. The name of the core group is "".
func (s Selector) Group() (name string, asked bool) {
	if s.group == Core {
		return "", true
	}
	return s.group, s.group != ""
}

// Covers reports whether the selector would choose the kind in some version.
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

// Needs describes what a kind must support to be chosen.
type Needs struct {
	// Writes requires that objects of the kind can be patched. Namespaced requires a namespaced kind; selectors by name ignore it.
	Writes, Namespaced bool
}

// Choice is the result of a selector.
type Choice struct {
	// Kinds are the chosen kinds in the order of discovery, each in one version.
	Kinds []Resource
	// Candidates are the kinds with an ambiguous name, of which none is chosen. Unwatched do not support list and watch.
	// Unwritten do not support patch, although the handlers need it.
	Candidates, Unwatched, Unwritten []Resource
}

// Choose chooses among the served kinds. The versions of a group must be in the API server's order of preference.
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

// foremost chooses the kind of the core group among kinds with the same name. Without one, all are returned as candidates.
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

// Names lists kinds as text for people.
func Names(of []Resource) string {
	names := make([]string, len(of))
	for i, r := range of {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// Trouble says why a selector by name has chosen nothing and what to do about it. It returns "" in all other cases.
func (s Selector) Trouble(choice Choice) string {
	switch {
	case !s.Named() || len(choice.Kinds) > 0:
		return ""
	case len(choice.Candidates) > 0:
		return fmt.Sprintf("%s are ambiguous (%s), so none is served; add the group to the name, such as %q",
			s, Names(choice.Candidates), choice.Candidates[0].qualified())
	case len(choice.Unwritten) > 0:
		return fmt.Sprintf("%s do not support patch, which the handlers need: %s", s, Names(choice.Unwritten))
	case len(choice.Unwatched) > 0:
		return fmt.Sprintf("%s do not support list and watch: %s", s, Names(choice.Unwatched))
	default:
		return fmt.Sprintf("waiting for %s to be served: is the CustomResourceDefinition installed?", s)
	}
}

// qualified returns the name with its group.
func (r Resource) qualified() string {
	if r.Group == "" {
		return r.Plural + "." + Core
	}
	return r.String()
}
