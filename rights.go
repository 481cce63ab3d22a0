package einmal

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/engine"
)

// access is what handlers do with objects of one kind beside those that they handle.
type access struct {
	object client.Object
	verbs  []string
	// narrow says that the rights hold in one namespace; "" is the one where the operator keeps its own state.
	narrow    bool
	namespace string
}

// Access is an option of New: handlers ask the API server for objects of this kind, with these verbs of RBAC (get, list,
// create, update, patch, delete, …), or of a subresource, such as update/status. The verb rbac of the operator's binary prints the rights for it; without them, and in
// einmaltest without the option, the API server refuses. Kinds that are handled need it only for verbs other than get,
// list, watch and patch.
func Access(object client.Object, verbs ...string) Option {
	return Option{name: "Access", operator: func(op *Operator) error {
		if object == nil || len(verbs) == 0 {
			return fmt.Errorf("option Access: give an object of the kind, and the verbs, such as get")
		}
		op.access = append(op.access, access{object: object, verbs: verbs})
		return nil
	}}
}

// AccessIn is an option of New: like Access, but the rights hold in one namespace. The verb rbac prints a Role for that namespace, so that the
// operator cannot read such objects elsewhere. The namespace "" is the one where the operator keeps its own state, next to its ServiceAccount.
func AccessIn(namespace string, object client.Object, verbs ...string) Option {
	return Option{name: "AccessIn", operator: func(op *Operator) error {
		if object == nil || len(verbs) == 0 {
			return fmt.Errorf("option AccessIn: give an object of the kind, and the verbs, such as get")
		}
		op.access = append(op.access, access{object: object, verbs: verbs, narrow: true, namespace: namespace})
		return nil
	}}
}

// Applies is an option of New: handlers apply children of these kinds. It is Access with what Change.Apply needs: get,
// create and patch.
func Applies(children ...client.Object) Option {
	return Option{name: "Applies", operator: func(op *Operator) error {
		for _, child := range children {
			if err := Access(child, "get", "create", "patch").operator(op); err != nil {
				return fmt.Errorf("option Applies: %w", err)
			}
		}
		op.applies = op.applies || len(children) > 0
		return nil
	}}
}

// rules are the rules for the kind itself and for each of its subresources.
func (a access) rules(group, plural string) []rbacv1.PolicyRule {
	verbs := map[string][]string{}
	for _, asked := range a.verbs {
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

// rights are what the operator may do that serves these namespaces: all that it needs, and no more.
func (op *Operator) rights(served filter.Namespaces) (engine.Rights, error) {
	rights := engine.Rights{Namespaces: served, Home: op.settings.Home}
	if op.undefined != nil {
		return rights, op.undefined
	}
	definitions := op.resources()
	for _, declared := range op.kinds {
		op.allowKind(&rights, declared, definitions)
	}
	for _, declared := range op.selected {
		op.allowSelected(&rights, declared, definitions)
	}
	op.allowRelated(&rights, definitions)
	if !served.All() && !served.Fixed() {
		rights.Allow(engine.ClusterWide, rule("", "namespaces", "list", "watch"))
	}
	if err := op.allowAccess(&rights, definitions); err != nil {
		return rights, err
	}
	rights.Allow(engine.InNamespaces, rule("events.k8s.io", "events", "create", "patch"))
	rights.AtHome = append(rights.AtHome, op.own("", "configmaps", "get", "patch"), rule("", "configmaps", "create"),
		op.own("coordination.k8s.io", "leases", "get", "update"), rule("coordination.k8s.io", "leases", "create"))
	return rights, nil
}

// allowAccess adds what the options Access and AccessIn ask for.
func (op *Operator) allowAccess(rights *engine.Rights, definitions map[schema.GroupKind]resource) error {
	for _, asked := range op.access {
		gvk, err := apiutil.GVKForObject(asked.object, op.scheme)
		if err != nil {
			return fmt.Errorf("option Access of %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", asked.object, err)
		}
		known, found := definitions[gvk.GroupKind()]
		if !found {
			known = guess(gvk, reflect.TypeOf(asked.object).Elem())
		}
		for _, allowed := range asked.rules(gvk.Group, known.plural) {
			if asked.narrow {
				rights.AllowIn(asked.namespace, allowed)
			} else {
				rights.Allow(known.where(), allowed)
			}
			rights.Asked = append(rights.Asked, allowed)
		}
	}
	return nil
}

// allowKind adds what it takes to handle a kind.
func (op *Operator) allowKind(rights *engine.Rights, declared *declaredKind, definitions map[schema.GroupKind]resource) {
	gvk := declared.kind.GVK
	known, found := definitions[gvk.GroupKind()]
	if !found {
		known = guess(gvk, declared.goType)
	}
	rights.Allow(known.where(), rule(gvk.Group, known.plural, "get", "list", "watch", "patch"))
	if known.hasStatus {
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/status", "patch"))
	}
	if op.applies { // To be an owner that waits for its children, where the cluster checks who may ask for that.
		rights.Allow(known.where(), rule(gvk.Group, known.plural+"/finalizers", "update"))
	}
	if declared.kind.Secret() {
		rights.AtHome = append(rights.AtHome, op.own("", "secrets", "get"), rule("", "secrets", "create"))
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: slices.Clone(verbs)}
}

// own is a rule for the object that the operator keeps its books in. What is created cannot be named.
func (op *Operator) own(group, resource string, verbs ...string) rbacv1.PolicyRule {
	named := rule(group, resource, verbs...)
	named.ResourceNames = []string{op.settings.Identity}
	return named
}

// resource is what rights need to know of a kind.
type resource struct {
	plural                 string
	hasStatus, clusterWide bool
}

func (r resource) where() engine.Where {
	if r.clusterWide {
		return engine.ClusterWide
	}
	return engine.InNamespaces
}

// guess is what holds for the built-in kinds, and mostly for others.
func guess(gvk schema.GroupVersionKind, goType reflect.Type) resource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	hasStatus := true
	if goType.Kind() == reflect.Struct && goType.Name() != "Unstructured" {
		_, hasStatus = goType.FieldByName("Status")
	}
	return resource{plural: plural.Resource, hasStatus: hasStatus, clusterWide: slices.Contains(clusterWide(), gvk.GroupKind().String())}
}

// clusterWide lists the built-in kinds that live in no namespace and that operators handle.
func clusterWide() []string {
	return []string{
		"Namespace", "Node", "PersistentVolume", "StorageClass.storage.k8s.io", "VolumeAttachment.storage.k8s.io",
		"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"CustomResourceDefinition.apiextensions.k8s.io", "PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io",
		"RuntimeClass.node.k8s.io", "CertificateSigningRequest.certificates.k8s.io",
	}
}

// resources are the kinds that the operator's CustomResourceDefinitions define.
func (op *Operator) resources() map[schema.GroupKind]resource {
	all := maps.Clone(op.defined)
	for _, declared := range op.kinds {
		if !op.definesItself(declared) {
			continue
		}
		if all == nil {
			all = map[schema.GroupKind]resource{}
		}
		plural, _ := meta.UnsafeGuessKindToResource(declared.kind.GVK)
		all[declared.kind.GVK.GroupKind()] = resource{plural: plural.Resource, hasStatus: true}
	}
	return all
}

// define notes the kinds that manifests define.
func (op *Operator) define(manifests [][]byte) error {
	for _, document := range documents(manifests) {
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
			return fmt.Errorf("option CRDs: a definition is no YAML: %w", err)
		}
		found := resource{plural: definition.Spec.Names.Plural, clusterWide: definition.Spec.Scope == "Cluster"}
		for _, version := range definition.Spec.Versions {
			found.hasStatus = found.hasStatus || version.Subresources.Status != nil
		}
		if op.defined == nil {
			op.defined = map[schema.GroupKind]resource{}
		}
		op.defined[schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}] = found
	}
	return nil
}

// documents are the single documents of definitions, without their separators.
func documents(definitions [][]byte) []string {
	var all []string
	for _, given := range definitions {
		for document := range strings.SplitSeq("\n"+string(given), "\n---") {
			if document = strings.TrimSpace(document); document != "" {
				all = append(all, document)
			}
		}
	}
	return all
}
