package einmal

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// definitions are the operator's CustomResourceDefinitions: those of the option CRDs, and one made for each Resource that
// these leave out.
func (op *Operator) definitions() ([][]byte, error) {
	given, err := defined(op.crds)
	if err != nil {
		return nil, err
	}
	all := append([][]byte(nil), op.crds...)
	for _, declared := range op.kinds {
		kind := declared.kind.GVK
		if _, is := declared.kind.New().(nameless); !is || given[kind.GroupKind()] {
			continue
		}
		text, err := yaml.Marshal(openDefinition(kind))
		if err != nil {
			return nil, fmt.Errorf("write the definition of %s: %w", kind.Kind, err)
		}
		all = append(all, text)
	}
	return all, nil
}

// defined tells which kinds manifests define.
func defined(manifests [][]byte) (map[schema.GroupKind]bool, error) {
	found := map[schema.GroupKind]bool{}
	for _, manifest := range manifests {
		for document := range bytes.SplitSeq(append([]byte("\n"), manifest...), []byte("\n---")) {
			var definition struct {
				Spec struct {
					Group string `json:"group"`
					Names struct {
						Kind string `json:"kind"`
					} `json:"names"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal(document, &definition); err != nil {
				return nil, fmt.Errorf("option CRDs: a definition is no YAML: %w", err)
			}
			found[schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}] = true
		}
	}
	return found, nil
}

// openDefinition defines a namespaced kind whose spec and status may hold anything.
func openDefinition(kind schema.GroupVersionKind) map[string]any {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
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
	}
}
