// Package rbac says which permissions an operator needs, and makes the roles that grant them.
package rbac

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/selection"
	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// Operator is what the permissions of an operator depend on.
type Operator struct {
	// Identity is the name of its Lease, of its ConfigMap and of its Secret. Home is their namespace.
	Identity, Home string
	// Served are the namespaces whose objects it handles.
	Served filter.Namespaces
	// Scheme knows the kinds of Go types. Defined is what CustomResourceDefinitions say of kinds.
	Scheme  *runtime.Scheme
	Defined map[schema.GroupKind]crd.Resource
	// Kinds are handled, Selected are handled where the API server serves them, Related are watched only.
	Kinds    []Kind
	Selected []Selection
	Related  []Kind
	// Requests are what handlers ask for in addition.
	Requests []Request
	// Events is true if it sends Kubernetes events.
	Events bool
}

// Kind is a handled or watched kind.
type Kind struct {
	GVK  schema.GroupVersionKind
	Type reflect.Type
	// Patched is true if handlers write objects of the kind, Applies if they apply children.
	Patched, Applies bool
}

func (k Kind) verbs() []string {
	verbs := []string{"get", "list", "watch"}
	if k.Patched {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// Selection is a selector of kinds whose objects are handled in the same way.
type Selection struct {
	Kind

	Of selection.Selector
	// Digests is true if the selector covers Secrets whose digests are recorded.
	Digests bool
}

// Request is what handlers do with objects of a kind, beside handling their own objects.
type Request struct {
	// Option is the name of the option that asks for it, for errors.
	Option string
	// Object is of the kind. Verbs are those of RBAC; a verb of a subresource is written as update/status.
	Object client.Object
	Verbs  []string
	// Narrow limits the request to Namespace; "" means the namespace of the operator's own objects.
	Narrow    bool
	Namespace string
}

// rules returns the rules for the kind and for each of its subresources.
func (r Request) rules(group, plural string) []rbacv1.PolicyRule {
	verbs := map[string][]string{}
	for _, asked := range r.Verbs {
		verb, subresource, named := strings.Cut(asked, "/")
		at := plural
		if named {
			at += "/" + subresource
		}
		verbs[at] = append(verbs[at], verb)
	}
	var rules []rbacv1.PolicyRule
	for _, at := range slices.Sorted(maps.Keys(verbs)) {
		rules = append(rules, rule(group, at, verbs[at]...))
	}
	return rules
}

// Rights returns the permissions that the operator needs, and no others. It returns an error for a request whose kind is unknown.
func (o Operator) Rights() (declaration.Rights, error) {
	rights := declaration.Rights{Namespaces: o.Served, Home: o.Home}
	for _, handled := range o.Kinds {
		o.allowHandled(&rights, handled.GVK, o.resource(handled.GVK, handled.Type), handled)
		if (declaration.Kind{GVK: handled.GVK}).Secret() {
			o.allowDigestKey(&rights)
		}
	}
	for _, selected := range o.Selected {
		o.allowSelected(&rights, selected)
	}
	o.allowRelated(&rights)
	if !o.Served.All() && !o.Served.Fixed() {
		rights.Allow(declaration.ClusterWide, rule("", "namespaces", "list", "watch"))
	}
	if err := o.allowRequests(&rights); err != nil {
		return rights, err
	}
	if o.Events {
		rights.Allow(declaration.InNamespaces, rule("", "events", "create", "patch"))
	}
	rights.AtHome = append(rights.AtHome, o.own("", "configmaps", "get", "patch"), rule("", "configmaps", "create"),
		o.own("coordination.k8s.io", "leases", "get", "update"), rule("coordination.k8s.io", "leases", "create"))
	return rights, nil
}

// allowHandled adds the permissions to handle one kind.
func (o Operator) allowHandled(rights *declaration.Rights, gvk schema.GroupVersionKind, known crd.Resource, handled Kind) {
	rights.Allow(placeOf(known), rule(gvk.Group, known.Plural, handled.verbs()...))
	if known.HasStatus && handled.Patched {
		rights.Allow(placeOf(known), rule(gvk.Group, known.Plural+"/status", "patch"))
	}
	if handled.Applies { // The admission plugin OwnerReferencesPermissionEnforcement requires it for blockOwnerDeletion.
		rights.Allow(placeOf(known), rule(gvk.Group, known.Plural+"/finalizers", "update"))
	}
}

// allowDigestKey adds the permissions for the Secret with the key of digests.
func (o Operator) allowDigestKey(rights *declaration.Rights) {
	rights.AtHome = append(rights.AtHome, o.own("", "secrets", "get"), rule("", "secrets", "create"))
}

// allowRelated adds the permissions to watch and read related kinds.
func (o Operator) allowRelated(rights *declaration.Rights) {
	allowed := map[schema.GroupKind]bool{}
	for _, handled := range o.Kinds {
		allowed[handled.GVK.GroupKind()] = true
	}
	for _, related := range o.Related {
		kind := related.GVK.GroupKind()
		if allowed[kind] {
			continue
		}
		allowed[kind] = true
		known := o.resource(related.GVK, related.Type)
		rights.Allow(placeOf(known), rule(kind.Group, known.Plural, "get", "list", "watch"))
	}
}

// allowRequests adds the permissions that handlers ask for.
func (o Operator) allowRequests(rights *declaration.Rights) error {
	for _, asked := range o.Requests {
		gvk, err := apiutil.GVKForObject(asked.Object, o.Scheme)
		if err != nil {
			return fmt.Errorf("option %s: %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", asked.Option, asked.Object, err)
		}
		known := o.resource(gvk, reflect.TypeOf(asked.Object).Elem())
		for _, allowed := range asked.rules(gvk.Group, known.Plural) {
			if asked.Narrow {
				rights.AllowIn(asked.Namespace, allowed)
			} else {
				rights.Allow(placeOf(known), allowed)
			}
			rights.Asked = append(rights.Asked, allowed)
		}
	}
	return nil
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: slices.Clone(verbs)}
}

// own returns a rule for the operator's own objects, which are named after its identity. It does not work for the verb
// create, which RBAC cannot limit to a name.
func (o Operator) own(group, resource string, verbs ...string) rbacv1.PolicyRule {
	named := rule(group, resource, verbs...)
	named.ResourceNames = []string{o.Identity}
	return named
}
