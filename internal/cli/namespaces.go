package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// namespaceFlag is a flag of namespaces. It can be given several times.
type namespaceFlag struct {
	patterns []string
	parsed   filter.Namespaces
}

// String returns the patterns.
func (f *namespaceFlag) String() string { return strings.Join(f.patterns, " ") }

// Set adds a pattern.
func (f *namespaceFlag) Set(pattern string) error {
	patterns := append(slices.Clone(f.patterns), pattern)
	parsed, err := filter.ParseNamespaces(patterns...)
	if err != nil {
		return err //nolint:wrapcheck // The error names the pattern and the remedy.
	}
	for _, name := range parsed.Names() {
		for _, problem := range validation.IsDNS1123Label(name) {
			return fmt.Errorf("%q: %s", name, problem)
		}
	}
	f.patterns, f.parsed = patterns, parsed
	return nil
}

func (f *namespaceFlag) given() bool { return len(f.patterns) > 0 }
