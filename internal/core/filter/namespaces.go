package filter

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Namespaces are patterns of names of namespaces, as Kopf reads them (kopf.md F90): each is a list of globs, separated by
// commas, with * and ?. The first glob decides who may be in; after it one with ! takes names out, and one without takes such
// names in again. A list that begins with ! begins with an implied *. A name matches that any of the patterns matches. The zero
// value matches every name.
type Namespaces struct {
	patterns [][]string
}

// ParseNamespaces reads patterns. No pattern is every namespace.
func ParseNamespaces(patterns ...string) (Namespaces, error) {
	var parsed Namespaces
	for _, given := range patterns {
		globs, err := parseGlobs(given)
		if err != nil {
			return Namespaces{}, fmt.Errorf("namespaces %q: %w", given, err)
		}
		parsed.patterns = append(parsed.patterns, globs)
	}
	return parsed, nil
}

func parseGlobs(given string) ([]string, error) {
	var globs []string
	for glob := range strings.SplitSeq(given, ",") {
		glob = strings.TrimSpace(glob)
		if err := checkGlob(strings.TrimPrefix(glob, "!")); err != nil {
			return nil, err
		}
		globs = append(globs, glob)
	}
	if strings.HasPrefix(globs[0], "!") {
		globs = slices.Insert(globs, 0, "*")
	}
	for _, glob := range globs[1:] {
		if name := glob; isName(name) && !matches(globs[0], name) {
			return nil, fmt.Errorf("%q adds nothing to %q, since the first glob of a pattern decides who may be in; give it as a pattern of its own", name, globs[0])
		}
	}
	return globs, nil
}

func checkGlob(glob string) error {
	if glob == "" {
		return errors.New("a name or glob is missing; leave the option out to serve all namespaces")
	}
	for _, letter := range glob {
		if !isNamed(letter) && letter != '*' && letter != '?' {
			return fmt.Errorf("%q is neither the name of a namespace nor a glob of lower-case letters, digits, -, * and ?", glob)
		}
	}
	return nil
}

func isNamed(letter rune) bool {
	return letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9' || letter == '-'
}

// isName tells whether a glob means one name.
func isName(glob string) bool { return !strings.ContainsAny(glob, "*?!") }

func matches(glob, name string) bool {
	matched, err := path.Match(glob, name)
	return matched && err == nil
}

// All tells whether every namespace matches because there are no patterns.
func (n Namespaces) All() bool { return len(n.patterns) == 0 }

// Match tells whether a namespace is among them.
func (n Namespaces) Match(name string) bool {
	return n.All() || slices.ContainsFunc(n.patterns, func(globs []string) bool { return matchGlobs(globs, name) })
}

func matchGlobs(globs []string, name string) bool {
	if !matches(globs[0], name) {
		return false
	}
	in := true
	for _, glob := range globs[1:] {
		if out, negated := strings.CutPrefix(glob, "!"); negated {
			in = in && !matches(out, name)
		} else {
			in = in || matches(glob, name)
		}
	}
	return in
}

// Names are those that are given outright, each once, in their order.
func (n Namespaces) Names() []string {
	var names []string
	for _, globs := range n.patterns {
		if name := globs[0]; isName(name) && matchGlobs(globs, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Fixed tells whether Names are all that can match, so that nobody has to look which namespaces there are.
func (n Namespaces) Fixed() bool {
	return !n.All() && !slices.ContainsFunc(n.patterns, func(globs []string) bool { return !isName(globs[0]) })
}

// String lists the patterns for people.
func (n Namespaces) String() string {
	var texts []string
	for _, globs := range n.patterns {
		texts = append(texts, strings.Join(globs, ","))
	}
	return strings.Join(texts, " ")
}
