package einmal

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rbacFlags are the flags of the verb rbac.
type rbacFlags struct {
	name, home string
	namespaces namespaceFlag
}

func (f *rbacFlags) parse(args []string, failures io.Writer) error {
	flags := flag.NewFlagSet("rbac", flag.ContinueOnError)
	flags.SetOutput(failures)
	flags.StringVar(&f.name, "name", "", "`name` of the roles and of the ServiceAccount that they are bound to; the default is the operator's identity")
	flags.StringVar(&f.home, "state-namespace", "", "`namespace` of the ServiceAccount, where the operator keeps its own books; the default is NAME-system")
	flags.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces that are served; can be given several times. For names the roles hold in these namespaces only; for patterns they hold everywhere")
	return onlyFlags(flags, args)
}

// commandRBAC prints the roles that the registered handlers need, and their bindings.
func (op *Operator) commandRBAC(args []string, out, failures io.Writer) int {
	var flags rbacFlags
	if code, ok := op.begin(&flags, args, failures); !ok {
		return code
	}
	roles, err := op.roles(flags)
	if err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitFailed
	}
	for _, role := range roles {
		text, err := yaml.Marshal(role)
		if err != nil {
			_, _ = fmt.Fprintln(failures, err)
			return exitFailed
		}
		_, _ = fmt.Fprintf(out, "---\n%s", text)
	}
	return exitStopped
}

// roles are the roles of the operator, each followed by its binding.
func (op *Operator) roles(flags rbacFlags) ([]any, error) {
	made := roleMaker{name: flags.name, home: flags.home}
	if made.name == "" {
		made.name = op.settings.Identity
	}
	if made.home == "" {
		made.home = made.name + "-system"
	}
	served := op.settings.Namespaces
	if flags.namespaces.given() {
		served = flags.namespaces.parsed
	}
	rights, err := op.rights(served)
	if err != nil {
		return nil, err
	}
	if !rights.Namespaces.Fixed() {
		rights.ClusterWide, rights.Served = append(rights.ClusterWide, rights.Served...), nil
	}
	made.everywhere(rights.ClusterWide)
	narrow := map[string][]rbacv1.PolicyRule{}
	maps.Copy(narrow, rights.In)
	for _, namespace := range rights.Namespaces.Names() {
		narrow[namespace] = append(slices.Clone(rights.Served), narrow[namespace]...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(narrow)) {
		made.in(namespace, made.name, narrow[namespace])
	}
	made.in(made.home, made.name+"-state", rights.AtHome)
	return made.roles, nil
}

// roleMaker makes roles and binds them to one ServiceAccount.
type roleMaker struct {
	name, home string
	roles      []any
}

func (m *roleMaker) everywhere(rules []rbacv1.PolicyRule) {
	if len(rules) == 0 {
		return
	}
	meta := metav1.ObjectMeta{Name: m.name}
	m.roles = append(m.roles,
		rbacv1.ClusterRole{TypeMeta: metaOf("ClusterRole"), ObjectMeta: meta, Rules: rules},
		rbacv1.ClusterRoleBinding{TypeMeta: metaOf("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: reference("ClusterRole", m.name), Subjects: m.account()})
}

func (m *roleMaker) in(namespace, name string, rules []rbacv1.PolicyRule) {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	m.roles = append(m.roles,
		rbacv1.Role{TypeMeta: metaOf("Role"), ObjectMeta: meta, Rules: rules},
		rbacv1.RoleBinding{TypeMeta: metaOf("RoleBinding"), ObjectMeta: meta, RoleRef: reference("Role", name), Subjects: m.account()})
}

func (m *roleMaker) account() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: m.name, Namespace: m.home}}
}

func metaOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func reference(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}
