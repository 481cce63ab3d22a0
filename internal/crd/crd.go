// Package crd reads the CustomResourceDefinitions of an operator, and makes one for a kind that has none.
package crd

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Resource is what permissions depend on for a kind.
type Resource struct {
	// Plural is the name of its resource, such as deployments.
	Plural string
	// HasStatus is true if the status is a subresource. ClusterWide is true if its objects have no namespace.
	HasStatus, ClusterWide bool
}

// Definitions are the CustomResourceDefinitions that an operator has been given. The zero value has none.
type Definitions struct {
	manifests [][]byte
	resources map[schema.GroupKind]Resource
}

// Add adds YAML with one or more definitions. If it is invalid, Add returns an error and the text is kept as it is.
func (d *Definitions) Add(manifests ...[]byte) error {
	d.manifests = append(d.manifests, manifests...)
	for _, document := range Documents(manifests) {
		var definition struct {
			Spec struct {
				Group, Scope string
				Names        struct{ Kind, Plural string }
				Versions     []struct {
					Subresources struct{ Status *struct{} }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
			return fmt.Errorf("invalid YAML: %w", err)
		}
		found := Resource{Plural: definition.Spec.Names.Plural, ClusterWide: definition.Spec.Scope == "Cluster"}
		for _, version := range definition.Spec.Versions {
			found.HasStatus = found.HasStatus || version.Subresources.Status != nil
		}
		if d.resources == nil {
			d.resources = map[schema.GroupKind]Resource{}
		}
		d.resources[schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}] = found
	}
	return nil
}

// Manifests returns the YAML as it was added.
func (d *Definitions) Manifests() [][]byte { return append([][]byte(nil), d.manifests...) }

// Resources returns a copy of what the definitions say of their kinds. It is not nil.
func (d *Definitions) Resources() map[schema.GroupKind]Resource {
	all := map[schema.GroupKind]Resource{}
	maps.Copy(all, d.resources)
	return all
}

// Has reports whether one of the definitions defines a kind.
func (d *Definitions) Has(kind schema.GroupKind) bool {
	_, has := d.resources[kind]
	return has
}

// Documents splits YAML into its documents, without the separators and without empty documents.
func Documents(manifests [][]byte) []string {
	var all []string
	for _, given := range manifests {
		for document := range strings.SplitSeq("\n"+string(given), "\n---") {
			if document = strings.TrimSpace(document); document != "" {
				all = append(all, document)
			}
		}
	}
	return all
}

// Open returns the YAML of a definition of a namespaced kind whose spec and status accept all fields.
func Open(kind schema.GroupVersionKind) ([]byte, error) {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural.Resource + "." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{
				"kind": kind.Kind, "listKind": kind.Kind + "List", "plural": plural.Resource, "singular": strings.ToLower(singular.Resource),
			},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open, "status": open},
				}},
				"subresources": map[string]any{"status": map[string]any{}},
			}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("marshal the CustomResourceDefinition of %s: %w", kind.Kind, err)
	}
	return text, nil
}

// ResourceOf returns the resource of a kind that Open defines.
func ResourceOf(kind schema.GroupVersionKind) Resource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return Resource{Plural: plural.Resource, HasStatus: true}
}
