package rbac

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/declaration"
)

// LongestNamespace is how many characters the name of a namespace may have.
const LongestNamespace = 63

// Account is the ServiceAccount of an operator, and what is printed for it beside roles.
type Account struct {
	// Name is the name of the ServiceAccount and of its roles. Home is its namespace.
	Name, Home string
	// WithAccount adds the ServiceAccount, WithNamespace its Namespace.
	WithAccount, WithNamespace bool
}

// DefaultHome returns the default namespace of a ServiceAccount: the name with dashes for dots, and -system.
func DefaultHome(name string) string { return strings.ReplaceAll(name, ".", "-") + "-system" }

// Objects returns what an operator needs in the cluster before it runs: the Namespace and the ServiceAccount that the account asks for, and
// roles with these rights, each followed by its binding. Rights in namespaces by a pattern hold everywhere, because a role cannot be limited
// to a pattern.
func (a Account) Objects(rights declaration.Rights) []any {
	var all []any
	if a.WithNamespace {
		all = append(all, a.core("Namespace", metav1.ObjectMeta{Name: a.Home}))
	}
	if a.WithAccount {
		all = append(all, a.core("ServiceAccount", metav1.ObjectMeta{Name: a.Name, Namespace: a.Home}))
	}
	if !rights.Namespaces.Fixed() {
		rights.ClusterWide, rights.Served = append(rights.ClusterWide, rights.Served...), nil
	}
	all = append(all, a.everywhere(rights.ClusterWide)...)
	narrow := map[string][]rbacv1.PolicyRule{}
	maps.Copy(narrow, rights.In)
	for _, namespace := range rights.Namespaces.Names() {
		narrow[namespace] = append(slices.Clone(rights.Served), narrow[namespace]...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(narrow)) {
		all = append(all, a.in(namespace, a.Name, narrow[namespace])...)
	}
	return append(all, a.in(a.Home, a.Name+"-state", rights.AtHome)...)
}

// manifest is an object of which only the name matters.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (Account) core(kind string, meta metav1.ObjectMeta) manifest {
	return manifest{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: meta}
}

// everywhere returns a ClusterRole and its binding.
func (a Account) everywhere(rules []rbacv1.PolicyRule) []any {
	if len(rules) == 0 {
		return nil
	}
	meta := metav1.ObjectMeta{Name: a.Name}
	return []any{
		rbacv1.ClusterRole{TypeMeta: metaOf("ClusterRole"), ObjectMeta: meta, Rules: rules},
		rbacv1.ClusterRoleBinding{TypeMeta: metaOf("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: reference("ClusterRole", a.Name), Subjects: a.subjects()},
	}
}

// in returns a Role and its binding.
func (a Account) in(namespace, name string, rules []rbacv1.PolicyRule) []any {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	return []any{
		rbacv1.Role{TypeMeta: metaOf("Role"), ObjectMeta: meta, Rules: rules},
		rbacv1.RoleBinding{TypeMeta: metaOf("RoleBinding"), ObjectMeta: meta, RoleRef: reference("Role", name), Subjects: a.subjects()},
	}
}

func (a Account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.Name, Namespace: a.Home}}
}

func metaOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func reference(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}
