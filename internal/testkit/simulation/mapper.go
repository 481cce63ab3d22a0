package simulation

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// mapper knows which resource a kind is of. It asks when it is told of one that it does not know, past whatever goes wrong around
// a process: a discovery that hangs under the informers' lock would freeze virtual time.
type mapper struct {
	meta.RESTMapper // as the world began
	discovery       discovery.DiscoveryInterface

	mu     sync.Mutex
	newest meta.RESTMapper
}

func newMapper(api discovery.DiscoveryInterface) (*mapper, error) {
	served, err := restmapper.GetAPIGroupResources(api)
	if err != nil {
		return nil, err
	}
	first := restmapper.NewDiscoveryRESTMapper(served)
	return &mapper{RESTMapper: first, newest: first, discovery: api}, nil
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
	served, err := restmapper.GetAPIGroupResources(m.discovery)
	if err != nil {
		return found, err
	}
	m.newest = restmapper.NewDiscoveryRESTMapper(served)
	return question(m.newest)
}
