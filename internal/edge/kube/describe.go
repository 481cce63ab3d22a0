package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// ErrNotServed means that the API server does not serve the kind, at least not yet.
var ErrNotServed = errors.New("the API server does not serve this kind")

// ErrNoSchema means that the API server serves the kind but has not published its schema yet. It does so shortly afterwards.
var ErrNoSchema = errors.New("the schema is not published yet")

// Description is what discovery and the published schema say about a kind.
type Description struct {
	Resource   string
	Namespaced bool
	// HasStatus means that the kind has a status subresource, so that writes of the status need separate requests.
	HasStatus bool
	// Conditions says which conditions the status accepts.
	Conditions Conditions
	// Schema is the path of the published schema, which contains a hash of it. It is "" for a built-in kind.
	Schema string
	// Defaults are the defaults of the schema.
	Defaults object.Defaults
	// Lists are the lists with keys.
	Lists patch.Lists
	// Carrier is where records are stored: in the status if its schema allows that, otherwise in an annotation.
	Carrier record.Carrier
}

// Describe asks the API server about a kind. It returns ErrNotServed if the API server does not serve the kind, and ErrNoSchema if it
// has not published the schema yet.
func Describe(ctx context.Context, api discovery.DiscoveryInterface, kind schema.GroupVersionKind) (Description, error) {
	resources, err := resourcesIn(ctx, api, kind.GroupVersion())
	if apierrors.IsNotFound(err) {
		return Description{}, ErrNotServed
	}
	if err != nil {
		return Description{}, fmt.Errorf("discover %s: %w", kind.GroupVersion(), err)
	}
	found := Description{Carrier: record.Annotation, Lists: conventional(nil)}
	for _, resource := range resources.APIResources {
		if resource.Kind == kind.Kind && found.Resource == "" {
			found.Resource, found.Namespaced = resource.Name, resource.Namespaced
		}
	}
	if found.Resource == "" {
		return Description{}, ErrNotServed
	}
	for _, resource := range resources.APIResources {
		found.HasStatus = found.HasStatus || resource.Name == found.Resource+"/status"
	}
	if kind.GroupKind() == (schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}) {
		found.Carrier = record.SeparateAnnotation
	}
	if scheme.Scheme.Recognizes(kind) {
		return found, nil // The status of a built-in kind has no field for records.
	}
	described, at, err := published(ctx, api, kind)
	if err != nil {
		return Description{}, err
	}
	found.Schema = at
	found.Defaults = described.defaults()
	found.Lists = conventional(described.lists(nil))
	found.Conditions = described.conditions()
	if described.allowsRecords() {
		found.Carrier = record.Status
	}
	return found, nil
}

// Served returns ErrNotServed if the API server does not serve the kind.
func Served(ctx context.Context, api discovery.DiscoveryInterface, kind schema.GroupVersionKind) error {
	resources, err := resourcesIn(ctx, api, kind.GroupVersion())
	if apierrors.IsNotFound(err) {
		return ErrNotServed
	}
	if err != nil {
		return fmt.Errorf("discover %s: %w", kind.GroupVersion(), err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == kind.Kind {
			return nil
		}
	}
	return ErrNotServed
}

func resourcesIn(ctx context.Context, api discovery.DiscoveryInterface, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	return discovery.ToDiscoveryInterfaceWithContext(api).ServerResourcesForGroupVersionWithContext(ctx, version.String())
}

// property is the part of an OpenAPI schema that says what an object can contain.
type property struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Preserve   bool                `json:"x-kubernetes-preserve-unknown-fields"`
	Additional json.RawMessage     `json:"additionalProperties"`
	Items      *property           `json:"items"`
	Default    any                 `json:"default"`
	ListType   string              `json:"x-kubernetes-list-type"`
	ListKeys   []string            `json:"x-kubernetes-list-map-keys"`
	Required   []string            `json:"required"`
	Enum       []any               `json:"enum"`
	Kinds      []struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
}

// Schemas returns the path of the published schema of each group version, which contains a hash of it. It takes one request.
func Schemas(ctx context.Context, api discovery.DiscoveryInterface) (map[schema.GroupVersion]string, error) {
	paths, err := discovery.ToDiscoveryInterfaceWithContext(api).OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list OpenAPI schemas: %w", err)
	}
	found := map[schema.GroupVersion]string{}
	for path, group := range paths {
		name, custom := strings.CutPrefix(path, "apis/")
		if version, err := schema.ParseGroupVersion(name); custom && err == nil {
			found[version] = group.ServerRelativeURL()
		}
	}
	return found, nil
}

// published reads the kind's schema and returns its path. It reads only the schemas of the group version, not those of the whole cluster.
func published(ctx context.Context, api discovery.DiscoveryInterface, kind schema.GroupVersionKind) (described property, at string, err error) {
	paths, err := discovery.ToDiscoveryInterfaceWithContext(api).OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return property{}, "", fmt.Errorf("list OpenAPI schemas: %w", err)
	}
	group, found := paths["apis/"+kind.GroupVersion().String()]
	if !found {
		return property{}, "", ErrNoSchema
	}
	text, err := group.SchemaWithContext(ctx, "application/json")
	if err != nil {
		return property{}, "", fmt.Errorf("read schema of %s: %w", kind.GroupVersion(), err)
	}
	var document struct {
		Components struct {
			Schemas map[string]property `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return property{}, "", fmt.Errorf("decode schema of %s: %w", kind.GroupVersion(), err)
	}
	for _, candidate := range document.Components.Schemas {
		for _, named := range candidate.Kinds {
			if named.Group == kind.Group && named.Version == kind.Version && named.Kind == kind.Kind {
				return candidate, group.ServerRelativeURL(), nil
			}
		}
	}
	return property{}, "", ErrNoSchema
}

// defaults collects the defaults of the schema.
func (p property) defaults() object.Defaults {
	found := object.Defaults{Value: p.Default}
	for name, child := range p.Properties {
		if below := child.defaults(); !below.Empty() {
			if found.Fields == nil {
				found.Fields = map[string]object.Defaults{}
			}
			found.Fields[name] = below
		}
	}
	var others property
	if json.Unmarshal(p.Additional, &others) == nil { // It can also be true, which defines no defaults.
		found.Others = someDefaults(others.defaults())
	}
	if p.Items != nil {
		found.Items = someDefaults(p.Items.defaults())
	}
	return found
}

func someDefaults(found object.Defaults) *object.Defaults {
	if found.Value = nil; found.Empty() {
		return nil
	}
	return &found
}

func (p property) allowsRecords() bool {
	if p.Preserve && len(p.Properties) == 0 {
		return true
	}
	status, found := p.Properties["status"]
	if !found {
		return false
	}
	records, found := status.Properties[record.RecordsField]
	if !found {
		return status.Preserve
	}
	var values property // A field of the same name that is not a map of strings belongs to the kind.
	return json.Unmarshal(records.Additional, &values) == nil && values.Type == "string"
}
