package einmal

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// definitions returns the operator's CustomResourceDefinitions: those of the option CRDs, and a generated one for each
// Resource that has none there.
func (op *Operator) definitions() ([][]byte, error) {
	if op.undefined != nil {
		return nil, op.undefined
	}
	all := append([][]byte(nil), op.crds...)
	for _, declared := range op.kinds {
		if !op.definesItself(declared) {
			continue
		}
		text, err := yaml.Marshal(openDefinition(declared.kind.GVK))
		if err != nil {
			return nil, fmt.Errorf("marshal the CustomResourceDefinition of %s: %w", declared.kind.GVK.Kind, err)
		}
		all = append(all, text)
	}
	return all, nil
}

// definesItself reports whether the kind is a Resource without a definition in the option CRDs.
func (op *Operator) definesItself(declared *declaredKind) bool {
	_, given := op.defined[declared.kind.GVK.GroupKind()]
	_, is := declared.kind.New().(nameless)
	return is && !given
}

// openDefinition returns the definition of a namespaced kind whose spec and status accept all fields.
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
