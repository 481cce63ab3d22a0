package einmal

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// NewCache creates the cache of a manager of your own, limited to the namespaces of the option Namespaces. Set it as
// NewCache in the manager's options, together with CacheOptions. It is required if Namespaces has patterns. With it, a
// namespace that the operator may not watch does not block the others. Other controllers of the manager see these
// namespaces only. Without the option Namespaces, it is the cache of controller-runtime.
//
// An object that does not fit the Go type of its kind does not stop the cache. Get returns an error for it, and List
// leaves it out.
//
// The list requests of the cache have the timeout of the option RequestTimeout. A watch whose connection is dead is
// opened again within three minutes.
func (op *Operator) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.HTTPClient == nil {
		through, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("create the client of the cache: %w", err)
		}
		options.HTTPClient = through
	}
	options.HTTPClient = op.deadlines.Client(options.HTTPClient)
	options.HTTPClient.Transport = op.tolerance.Wrap(options.HTTPClient.Transport)
	if op.settings.Namespaces.All() {
		made, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("create the cache: %w", err)
		}
		return op.tolerance.Cache(made), nil
	}
	spaces, err := kube.NewSpaces(config, options, op.settings.Namespaces, op.settings.Log)
	if err != nil {
		return nil, err
	}
	spaces.Closed = op.closed
	return op.tolerance.Cache(spaces), nil
}

// closed removes the watch health and metrics of a namespace that is gone.
func (op *Operator) closed(namespace string) {
	for _, resource := range op.streams.ForgetNamespace(namespace) {
		op.counted.UnwatchedIn(op.settings.Identity, resource, namespace)
	}
}

// spaces returns the namespace caches of a manager. It returns nil if the manager watches all namespaces, or has its
// own cache for fixed names.
func (op *Operator) spaces(mgr manager.Manager) (*kube.Spaces, error) {
	spaces, served := kube.SpacesOf(mgr.GetCache()), op.settings.Namespaces
	if spaces == nil && !served.All() && !served.Fixed() {
		return nil, fmt.Errorf("option Namespaces: the manager's cache does not support the pattern %s: create the manager with NewCache: op.NewCache", served)
	}
	return spaces, nil
}
