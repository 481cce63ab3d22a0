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

// allowSelected adds what it takes to handle kinds that are chosen at run time. Which those are, only an API server knows: the
// rules are as narrow as the selector and the kinds that are known here allow.
func (op *Operator) allowSelected(rights *engine.Rights, declared *declaredSelection, definitions map[schema.GroupKind]resource) {
	verbs := []string{"get", "list", "watch"}
	if len(declared.kind.Handlers) > 0 { // Those of events write nothing.
		verbs = append(verbs, "patch")
	}
	known := op.named(declared.of, definitions)
	for _, gvk := range slices.SortedFunc(maps.Keys(known), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		op.allowNamed(rights, gvk, known[gvk], verbs)
	}
	if len(known) == 0 {
		group := rbacv1.APIGroupAll
		if name, asked := declared.of.Group(); asked {
			group = name
		}
		rights.Allow(engine.InNamespaces, rule(group, rbacv1.ResourceAll, verbs...))
		if op.applies {
			rights.Allow(engine.InNamespaces, rule(group, "*/finalizers", "update"))
		}
	}
	if declared.mayBeSecrets() && declared.kind.Recorded() {
		rights.AtHome = append(rights.AtHome, op.own("", "secrets", "get"), rule("", "secrets", "create"))
	}
}

// allowNamed adds what it takes to handle a kind with these verbs.
func (op *Operator) allowNamed(rights *engine.Rights, gvk schema.GroupVersionKind, known resource, verbs []string) {
	rights.Allow(known.where(), rule(gvk.Group, known.plural, verbs...))
	if known.hasStatus && slices.Contains(verbs, "patch") {
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/status", "patch"))
	}
	if op.applies {
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/finalizers", "update"))
	}
}

// named are the kinds of that name among those of the operator's definitions and the built-in ones, each in one version.
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

// mayBeSecrets tells whether the Secrets of the core API may be chosen.
func (d *declaredSelection) mayBeSecrets() bool {
	return d.of.Covers(selection.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Singular: "secret"})
}
