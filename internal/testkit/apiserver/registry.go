package apiserver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// registry knows what is served.
type registry struct {
	mu    sync.RWMutex
	kinds []*kind.Kind
	// changes counts what has changed.
	changes int
}

func (r *registry) add(kinds []*kind.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = append(slices.Clone(r.kinds), kinds...)
	r.changes++
}

// replace exchanges the custom kinds of a resource.
func (r *registry) replace(group, plural string, kinds []*kind.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(r.kinds), func(k *kind.Kind) bool { return k.Group == group && k.Plural == plural })
	r.kinds = slices.Concat(others, kinds)
	r.changes++
}

// tag reports whether something has changed.
func (r *registry) tag() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return strconv.Quote(strconv.Itoa(r.changes))
}

func (r *registry) all() []*kind.Kind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kinds
}

// find returns the kind of a resource, or nil.
func (r *registry) find(wanted schema.GroupVersion, plural string) *kind.Kind {
	for _, k := range r.all() {
		if k.Plural == plural && k.GroupVersion() == wanted {
			return k
		}
	}
	return nil
}

// byKind returns the kind of that name, or nil.
func (r *registry) byKind(wanted schema.GroupVersionKind) *kind.Kind {
	for _, k := range r.all() {
		if k.GroupVersionKind == wanted {
			return k
		}
	}
	return nil
}

// ofResource returns some served version of a stored resource, or nil.
func (r *registry) ofResource(resource string) *kind.Kind {
	for _, k := range r.all() {
		if k.Resource() == resource {
			return k
		}
	}
	return nil
}

func (r *registry) version(wanted schema.GroupVersion) []*kind.Kind {
	var found []*kind.Kind
	for _, k := range r.all() {
		if k.GroupVersion() == wanted {
			found = append(found, k)
		}
	}
	return found
}

// versions lists the groups that are served with their versions, the preferred one first. The core group is "".
func (r *registry) versions() map[string][]string {
	groups := map[string][]string{}
	for _, k := range r.all() {
		if !slices.Contains(groups[k.Group], k.Version) {
			groups[k.Group] = append(groups[k.Group], k.Version)
		}
	}
	for _, versions := range groups {
		slices.SortFunc(versions, func(a, b string) int {
			return cmp.Or(-version.CompareKubeAwareVersionStrings(a, b), strings.Compare(a, b))
		})
	}
	return groups
}
