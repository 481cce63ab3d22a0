package rbac

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// allowSelected adds the permissions for the kinds of a selector. Only an API server knows these kinds. So the rules are as narrow as the
// selector, the operator's definitions and the built-in kinds allow.
func (o Operator) allowSelected(rights *declaration.Rights, selected Selection) {
	known := o.named(selected.Of)
	for _, gvk := range slices.SortedFunc(maps.Keys(known), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		o.allowHandled(rights, gvk, known[gvk], selected.Kind)
	}
	if len(known) == 0 {
		group := rbacv1.APIGroupAll
		if name, asked := selected.Of.Group(); asked {
			group = name
		}
		rights.Allow(declaration.InNamespaces, rule(group, rbacv1.ResourceAll, selected.verbs()...))
		if selected.Applies {
			rights.Allow(declaration.InNamespaces, rule(group, "*/finalizers", "update"))
		}
	}
	if selected.Digests {
		o.allowDigestKey(rights)
	}
}

// named returns the kinds that a selector by name covers, among the operator's definitions and the built-in kinds, each
// in one version.
func (o Operator) named(of selection.Selector) map[schema.GroupVersionKind]crd.Resource {
	found := map[schema.GroupVersionKind]crd.Resource{}
	if !of.Named() {
		return found
	}
	groups := map[schema.GroupKind]bool{}
	consider := func(gvk schema.GroupVersionKind, known crd.Resource) {
		described := selection.Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: known.Plural, Singular: strings.ToLower(gvk.Kind)}
		if of.Covers(described) && !groups[gvk.GroupKind()] {
			groups[gvk.GroupKind()], found[gvk] = true, known
		}
	}
	for kind, known := range o.Defined {
		consider(kind.WithVersion(""), known)
	}
	for gvk, goType := range o.Scheme.AllKnownTypes() {
		if _, isObject := goType.FieldByName("ObjectMeta"); isObject {
			consider(gvk, guess(gvk, goType))
		}
	}
	return found
}
