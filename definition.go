package einmal

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// definitions are the operator's CustomResourceDefinitions: those of the option CRDs, and one made for each Resource that
// these leave out.
func (op *Operator) definitions() ([][]byte, error) {
	given, err := kindsIn(op.crds)
	if err != nil {
		return nil, err
	}
	all := append([][]byte(nil), op.crds...)
	for _, declared := range op.kinds {
		kind := declared.kind.GVK
		_, found := given[kind.GroupKind()]
		if _, is := declared.kind.New().(nameless); !is || found {
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
