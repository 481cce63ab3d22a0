package einmal

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/engine"
)

// allowSelected adds the permissions for the kinds of a ForEvery. Only an API server knows these kinds. So the rules
// are as narrow as the selector, the operator's definitions and the built-in kinds allow.
func (op *Operator) allowSelected(rights *engine.Rights, declared *declaredSelection, definitions map[schema.GroupKind]resource) {
	known := op.named(declared.of, definitions)
	for _, gvk := range slices.SortedFunc(maps.Keys(known), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		op.allowNamed(rights, gvk, known[gvk], declared.declaredKind)
	}
	if len(known) == 0 {
		group := rbacv1.APIGroupAll
		if name, asked := declared.of.Group(); asked {
			group = name
		}
		rights.Allow(engine.InNamespaces, rule(group, rbacv1.ResourceAll, declared.verbs()...))
		if op.appliesFor(declared.declaredKind) {
			rights.Allow(engine.InNamespaces, rule(group, "*/finalizers", "update"))
		}
	}
	if declared.mayBeSecrets() && declared.kind.Recorded() {
		rights.AtHome = append(rights.AtHome, op.own("", "secrets", "get"), rule("", "secrets", "create"))
	}
}

// verbs returns the verbs that handling the kind needs. Event handlers need no patch.
func (d *declaredKind) verbs() []string {
	verbs := []string{"get", "list", "watch"}
	if len(d.kind.Handlers) > 0 {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// allowNamed adds the permissions to handle one kind.
func (op *Operator) allowNamed(rights *engine.Rights, gvk schema.GroupVersionKind, known resource, declared *declaredKind) {
	verbs := declared.verbs()
	rights.Allow(known.where(), rule(gvk.Group, known.plural, verbs...))
	if known.hasStatus && slices.Contains(verbs, "patch") {
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/status", "patch"))
	}
	if op.appliesFor(declared) { // The admission plugin OwnerReferencesPermissionEnforcement requires it for blockOwnerDeletion.
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/finalizers", "update"))
	}
}

// named returns the kinds that a selector by name covers, among the operator's definitions and the built-in kinds, each
// in one version.
func (op *Operator) named(of selection.Selector, definitions map[schema.GroupKind]resource) map[schema.GroupVersionKind]resource {
	found := map[schema.GroupVersionKind]resource{}
	if !of.Named() {
		return found
	}
	groups := map[schema.GroupKind]bool{}
	consider := func(gvk schema.GroupVersionKind, known resource) {
		described := selection.Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: known.plural, Singular: strings.ToLower(gvk.Kind)}
		if of.Covers(described) && !groups[gvk.GroupKind()] {
			groups[gvk.GroupKind()], found[gvk] = true, known
		}
	}
	for kind, known := range definitions {
		consider(kind.WithVersion(""), known)
	}
	for gvk, goType := range op.scheme.AllKnownTypes() {
		if _, isObject := goType.FieldByName("ObjectMeta"); isObject {
			consider(gvk, guess(gvk, goType))
		}
	}
	return found
}

// mayBeSecrets reports whether the selector covers core Secrets.
func (d *declaredSelection) mayBeSecrets() bool {
	return d.of.Covers(selection.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Singular: "secret"})
}
