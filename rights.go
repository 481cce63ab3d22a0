package einmal

import (
	"errors"
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

// access is what handlers may do with objects of one kind, in addition to handling their own objects.
type access struct {
	option string
	object client.Object
	verbs  []string
	// narrow limits the access to one namespace; "" means the state namespace.
	narrow    bool
	namespace string
}

// permissions are what handlers need in addition to handling their own objects.
type permissions struct {
	access []access
	// applies is true if handlers apply children.
	applies bool
}

// allow adds the permissions that the options of a handler ask for. Its option Applies holds for handlers of its kind
// only.
func (op *Operator) allow(declared *declaredKind, asked permissions) {
	op.permissions.access = append(op.permissions.access, asked.access...)
	declared.applies = declared.applies || asked.applies
}

// appliesFor reports whether handlers of a kind apply children.
func (op *Operator) appliesFor(declared *declaredKind) bool {
	return op.permissions.applies || declared.applies
}

// permissionOption returns an option that asks for permissions, of the operator or of one handler.
func permissionOption(name string, ask func(*permissions) error) PermissionOption {
	named := func(asked *permissions) error {
		if err := ask(asked); err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
		return nil
	}
	return option{
		name:     name,
		operator: func(op *Operator) error { return named(&op.permissions) },
		handler:  func(settings *handlerSettings) error { return named(&settings.permissions) },
	}
}

// add adds access to objects of a kind.
func (p *permissions) add(asked access) error {
	if asked.object == nil || len(asked.verbs) == 0 {
		return errors.New("must have an object of the kind and at least one verb, such as get")
	}
	p.access = append(p.access, asked)
	return nil
}

// Permissions declares that handlers send requests for objects of a kind, with these verbs of RBAC (get, list, create,
// update, patch, delete and so on), or verbs of a subresource, such as update/status. Give it to New, or to the handler
// that needs it.
//
// The command rbac of the operator's program prints the roles. Without the option, the API server refuses the requests,
// and so does package einmaltest. A handled kind needs the option only for verbs other than get, list and watch.
func Permissions(object client.Object, verbs ...string) PermissionOption {
	return permissionOption("Permissions", func(asked *permissions) error {
		return asked.add(access{option: "Permissions", object: object, verbs: verbs})
	})
}

// PermissionsIn is Permissions for objects in one namespace. The command rbac prints a Role for that namespace, so the
// operator gets no access to such objects elsewhere. The namespace "" means the one of StateNamespace, in which the
// operator's ServiceAccount is.
func PermissionsIn(namespace string, object client.Object, verbs ...string) PermissionOption {
	return permissionOption("PermissionsIn", func(asked *permissions) error {
		return asked.add(access{option: "PermissionsIn", object: object, verbs: verbs, narrow: true, namespace: namespace})
	})
}

// Applies declares that handlers apply children of these kinds. It is Permissions with the verbs that Change.Apply
// needs: get, create and patch.
func Applies(children ...client.Object) PermissionOption {
	return permissionOption("Applies", func(asked *permissions) error {
		var wrong error
		for _, child := range children {
			wrong = errors.Join(wrong, asked.add(access{option: "Applies", object: child, verbs: []string{"get", "create", "patch"}}))
		}
		asked.applies = asked.applies || len(children) > 0
		return wrong
	})
}

// rules returns the rules for the kind and for each of its subresources.
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

// rights returns the permissions that the operator needs if it serves these namespaces, and no others.
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
	if !op.withoutEvents {
		rights.Allow(engine.InNamespaces, rule("", "events", "create", "patch"))
	}
	rights.AtHome = append(rights.AtHome, op.own("", "configmaps", "get", "patch"), rule("", "configmaps", "create"),
		op.own("coordination.k8s.io", "leases", "get", "update"), rule("coordination.k8s.io", "leases", "create"))
	return rights, nil
}

// allowAccess adds the permissions of the options Permissions, PermissionsIn and Applies.
func (op *Operator) allowAccess(rights *engine.Rights, definitions map[schema.GroupKind]resource) error {
	for _, asked := range op.permissions.access {
		gvk, err := apiutil.GVKForObject(asked.object, op.scheme)
		if err != nil {
			return fmt.Errorf("option %s: %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", asked.option, asked.object, err)
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

// allowKind adds the permissions to handle a kind.
func (op *Operator) allowKind(rights *engine.Rights, declared *declaredKind, definitions map[schema.GroupKind]resource) {
	gvk := declared.kind.GVK
	known, found := definitions[gvk.GroupKind()]
	if !found {
		known = guess(gvk, declared.goType)
	}
	op.allowNamed(rights, gvk, known, declared)
	if declared.kind.Secret() {
		rights.AtHome = append(rights.AtHome, op.own("", "secrets", "get"), rule("", "secrets", "create"))
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: slices.Clone(verbs)}
}

// own returns a rule for the operator's own objects, which are named after its identity. It does not work for the verb
// create, which RBAC cannot limit to a name.
func (op *Operator) own(group, resource string, verbs ...string) rbacv1.PolicyRule {
	named := rule(group, resource, verbs...)
	named.ResourceNames = []string{op.settings.Identity}
	return named
}

// resource is what the permissions depend on for a kind.
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

// guess returns what is true for the built-in kinds, and probably for others.
func guess(gvk schema.GroupVersionKind, goType reflect.Type) resource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	hasStatus := true
	if goType.Kind() == reflect.Struct && goType.Name() != "Unstructured" {
		_, hasStatus = goType.FieldByName("Status")
	}
	return resource{plural: plural.Resource, hasStatus: hasStatus, clusterWide: slices.Contains(clusterWide(), gvk.GroupKind().String())}
}

// clusterWide lists the built-in cluster-scoped kinds that operators handle.
func clusterWide() []string {
	return []string{
		"Namespace", "Node", "PersistentVolume", "StorageClass.storage.k8s.io", "VolumeAttachment.storage.k8s.io",
		"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"CustomResourceDefinition.apiextensions.k8s.io", "PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io",
		"RuntimeClass.node.k8s.io", "CertificateSigningRequest.certificates.k8s.io",
	}
}

// resources returns the kinds that the operator's CustomResourceDefinitions define.
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

// define reads which kinds the manifests define.
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
			return fmt.Errorf("option CRDs: invalid YAML: %w", err)
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

// documents splits YAML into its documents, without the separators.
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
