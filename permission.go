package einmal

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/rbac"
)

// permissions are what handlers need in addition to handling their own objects.
type permissions struct {
	requests []rbac.Request
	// applies is true if handlers apply children.
	applies bool
}

// allow adds the permissions that the options of a handler ask for. Its option Applies holds for handlers of its kind
// only.
func (op *Operator) allow(declared *declaredKind, asked permissions) {
	op.permissions.requests = append(op.permissions.requests, asked.requests...)
	declared.applies = declared.applies || asked.applies
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

// add adds a request for objects of a kind.
func (p *permissions) add(asked rbac.Request) error {
	if asked.Object == nil || len(asked.Verbs) == 0 {
		return errors.New("must have an object of the kind and at least one verb, such as get")
	}
	p.requests = append(p.requests, asked)
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
		return asked.add(rbac.Request{Option: "Permissions", Object: object, Verbs: verbs})
	})
}

// PermissionsIn is Permissions for objects in one namespace. The command rbac prints a Role for that namespace, so the
// operator gets no access to such objects elsewhere. The namespace "" means the one of StateNamespace, in which the
// operator's ServiceAccount is.
func PermissionsIn(namespace string, object client.Object, verbs ...string) PermissionOption {
	return permissionOption("PermissionsIn", func(asked *permissions) error {
		return asked.add(rbac.Request{Option: "PermissionsIn", Object: object, Verbs: verbs, Narrow: true, Namespace: namespace})
	})
}

// Applies declares that handlers apply children of these kinds. It is Permissions with the verbs that Change.Apply
// needs: get, create and patch.
func Applies(children ...client.Object) PermissionOption {
	return permissionOption("Applies", func(asked *permissions) error {
		var wrong error
		for _, child := range children {
			wrong = errors.Join(wrong, asked.add(rbac.Request{Option: "Applies", Object: child, Verbs: []string{"get", "create", "patch"}}))
		}
		asked.applies = asked.applies || len(children) > 0
		return wrong
	})
}

// rights returns the permissions that the operator needs if it serves these namespaces, and no others.
func (op *Operator) rights(served filter.Namespaces) (declaration.Rights, error) {
	if op.undefined != nil {
		return declaration.Rights{Namespaces: served, Home: op.settings.Home}, op.undefined
	}
	needs := rbac.Operator{
		Identity: op.settings.Identity, Home: op.settings.Home, Served: served, Scheme: op.scheme, Defined: op.resources(),
		Requests: op.permissions.requests, Events: !op.withoutEvents,
	}
	for _, declared := range op.kinds {
		needs.Kinds = append(needs.Kinds, op.needsOf(declared))
	}
	for _, declared := range op.selected {
		needs.Selected = append(needs.Selected, rbac.Selection{
			Kind: op.needsOf(declared.declaredKind), Of: declared.of, Digests: declared.mayBeSecrets() && declared.kind.Recorded(),
		})
	}
	op.eachRelated(func(_ string, one relatedKind) {
		if gvk, err := op.relatedGVK(one); err == nil { // Operator.check reports the error.
			needs.Related = append(needs.Related, rbac.Kind{GVK: gvk, Type: one.goType})
		}
	})
	return needs.Rights()
}

// needsOf returns what the permissions for a handled kind depend on. Event handlers do not patch.
func (op *Operator) needsOf(declared *declaredKind) rbac.Kind {
	return rbac.Kind{
		GVK: declared.kind.GVK, Type: declared.goType, Patched: len(declared.kind.Handlers) > 0, Applies: op.permissions.applies || declared.applies,
	}
}
