package einmal

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// NewCache makes the cache of a manager of your own that serves the namespaces of the option Namespaces: give it to the manager's
// options as NewCache, beside CacheOptions. It is needed for patterns, and lets a namespace that may not be watched be in
// nobody's way; with all namespaces it is controller-runtime's own. Other controllers of the manager see these namespaces only.
//
// The lists of the cache have the deadline of the option RequestTimeout. A watch whose connection is dead is opened again within three minutes.
func (op *Operator) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.HTTPClient == nil {
		through, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("make the client of the cache: %w", err)
		}
		options.HTTPClient = through
	}
	options.HTTPClient = op.deadlines.Client(options.HTTPClient)
	if op.settings.Namespaces.All() {
		made, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("make the cache: %w", err)
		}
		return made, nil
	}
	spaces, err := kube.NewSpaces(config, options, op.settings.Namespaces, op.settings.Log)
	if err != nil {
		return nil, err
	}
	spaces.Closed = op.closed
	return spaces, nil
}

// closed forgets how the watches of a namespace fared that is gone.
func (op *Operator) closed(namespace string) {
	for _, resource := range op.streams.ForgetNamespace(namespace) {
		op.counted.UnwatchedIn(op.settings.Identity, resource, namespace)
	}
}

// spaces are those of a manager; nil where it watches all namespaces, or names alone in a way of its own.
func (op *Operator) spaces(mgr manager.Manager) (*kube.Spaces, error) {
	spaces, are := mgr.GetCache().(*kube.Spaces)
	served := op.settings.Namespaces
	if !are && !served.All() && !served.Fixed() {
		return nil, fmt.Errorf("option Namespaces: the manager's cache cannot follow namespaces by the pattern %s: make the manager with NewCache: op.NewCache", served)
	}
	return spaces, nil
}

// namespaceFlag is a flag of namespaces, which can be given several times.
type namespaceFlag struct {
	patterns []string
	parsed   filter.Namespaces
}

// String shows the patterns.
func (f *namespaceFlag) String() string { return strings.Join(f.patterns, " ") }

// Set adds a pattern.
func (f *namespaceFlag) Set(pattern string) error {
	patterns := append(slices.Clone(f.patterns), pattern)
	parsed, err := filter.ParseNamespaces(patterns...)
	if err != nil {
		return err //nolint:wrapcheck // It names the pattern and the remedy.
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
