package filter

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Namespaces is a set of patterns for namespace names, with the semantics of Kopf. Each pattern is a comma-separated list of
// globs with * and ?. The first glob selects names; after it, a glob with ! excludes names, and one without ! includes such
// names again. A pattern that starts with ! starts with an implied *. A name matches if any of the patterns matches it. The
// zero value matches every name.
type Namespaces struct {
	patterns [][]string
}

// ParseNamespaces parses patterns. Without patterns, every namespace matches.
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
			return nil, fmt.Errorf("%q has no effect: the first glob of the pattern, %q, does not match it; give it as a separate pattern", name, globs[0])
		}
	}
	return globs, nil
}

func checkGlob(glob string) error {
	if glob == "" {
		return errors.New("empty name or glob; omit the option to serve all namespaces")
	}
	for _, letter := range glob {
		if !isNamed(letter) && letter != '*' && letter != '?' {
			return fmt.Errorf("invalid name or glob %q: only lower-case letters, digits, -, * and ? are allowed", glob)
		}
	}
	return nil
}

func isNamed(letter rune) bool {
	return letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9' || letter == '-'
}

// isName reports whether a glob is a literal name.
func isName(glob string) bool { return !strings.ContainsAny(glob, "*?!") }

func matches(glob, name string) bool {
	matched, err := path.Match(glob, name)
	return matched && err == nil
}

// All reports whether there are no patterns, so that every namespace matches.
func (n Namespaces) All() bool { return len(n.patterns) == 0 }

// Match reports whether any pattern matches the name.
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

// Names returns the names that are given literally, without duplicates and in order.
func (n Namespaces) Names() []string {
	var names []string
	for _, globs := range n.patterns {
		if name := globs[0]; isName(name) && matchGlobs(globs, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Fixed reports whether only Names can match, so that namespaces need not be listed.
func (n Namespaces) Fixed() bool {
	return !n.All() && !slices.ContainsFunc(n.patterns, func(globs []string) bool { return !isName(globs[0]) })
}

// String returns the patterns as text for people.
func (n Namespaces) String() string {
	var texts []string
	for _, globs := range n.patterns {
		texts = append(texts, strings.Join(globs, ","))
	}
	return strings.Join(texts, " ")
}
