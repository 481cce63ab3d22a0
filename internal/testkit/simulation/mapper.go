package simulation

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// mapper knows which resource a kind is of. It asks the server about a kind that it does not know, past all faults around
// a process: a discovery that hangs under the informers' lock would freeze virtual time.
type mapper struct {
	meta.RESTMapper // as the world began
	discovery       discovery.DiscoveryInterface

	mu     sync.Mutex
	groups map[string]*restmapper.APIGroupResources // also those that are not told of any more
	newest meta.RESTMapper
}

func newMapper(api discovery.DiscoveryInterface) (*mapper, error) {
	m := &mapper{discovery: api, groups: map[string]*restmapper.APIGroupResources{}}
	if err := m.look(); err != nil {
		return nil, err
	}
	m.RESTMapper = m.newest
	return m, nil
}

func (m *mapper) look() error {
	served, err := restmapper.GetAPIGroupResources(m.discovery)
	if err != nil {
		return err
	}
	for _, group := range served {
		if len(group.VersionedResources) > 0 { // Else discovery of the group has failed.
			m.groups[group.Group.Name] = group
		}
	}
	m.newest = restmapper.NewDiscoveryRESTMapper(slices.Collect(maps.Values(m.groups)))
	return nil
}

// RESTMapping finds the resource of a kind.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(m, func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(kind, versions...) })
}

// KindFor finds the kind of a resource.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(resource) })
}

// ask asks what was known last, and if that does not help, what is served now.
func ask[V any](m *mapper, question func(meta.RESTMapper) (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := question(m.newest)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	if err := m.look(); err != nil {
		return found, err
	}
	return question(m.newest)
}
