package einmal

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// longestNamespace is how long the name of a namespace may be.
const longestNamespace = 63

// rbacHelp is printed above the flags.
const rbacHelp = `Prints what the operator needs in the cluster before it runs: its Namespace, its ServiceAccount, and roles with the rights of
its handlers and no others, bound to that ServiceAccount. Apply it with kubectl apply -f -

With -state-namespace the Namespace is not printed: it must exist. With -roles-only, neither Namespace nor ServiceAccount is
printed, for those that have manifests of their own for them.
`

// rbacFlags are the flags of the command rbac.
type rbacFlags struct {
	name, home string
	namespaces namespaceFlag
	rolesOnly  bool
}

func (*rbacFlags) help() string { return rbacHelp }

func (f *rbacFlags) declare(set *flag.FlagSet) {
	set.StringVar(&f.name, "name", "", "`name` of the roles and of the ServiceAccount; the default is the operator's identity")
	set.StringVar(&f.home, "state-namespace", "", "existing `namespace` of the ServiceAccount and of the operator's own ConfigMap, Lease and Secret; the default is the option StateNamespace of the operator, or NAME-system with dashes for dots")
	set.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces that are served; can be given several times. For names the roles hold in these namespaces only; for patterns they hold everywhere")
	set.BoolVar(&f.rolesOnly, "roles-only", false, "print the roles and their bindings only")
}

func (*rbacFlags) own(string) bool { return false }

func (f *rbacFlags) validate() error {
	if f.name != "" {
		for _, problem := range validation.IsDNS1123Subdomain(f.name) {
			return &flagError{name: "name", value: f.name, reason: problem}
		}
	}
	if f.home != "" {
		return checkNamespace("state-namespace", f.home)
	}
	return nil
}

// commandRBAC prints the ServiceAccount of the operator, with its namespace, roles and bindings.
func (op *Operator) commandRBAC(args []string, out, failures io.Writer) int {
	var flags rbacFlags
	if code, ok := op.begin("rbac", &flags, args, out, failures); !ok {
		return code
	}
	made := op.roleMaker(flags)
	if len(made.home) > longestNamespace {
		_, _ = fmt.Fprintf(failures, "%s rbac: the default namespace %q has more than %d characters: name one with --state-namespace\n",
			programName(), made.home, longestNamespace)
		return exitUsage
	}
	objects, err := op.roles(made, flags)
	if err != nil {
		fail(failures, err)
		return exitFailed
	}
	for _, one := range objects {
		text, err := yaml.Marshal(one)
		if err != nil {
			fail(failures, err)
			return exitFailed
		}
		_, _ = fmt.Fprintf(out, "---\n%s", text)
	}
	return exitOK
}

// roleMaker returns the maker of the roles that the flags ask for.
func (op *Operator) roleMaker(flags rbacFlags) *roleMaker {
	made := &roleMaker{name: cmp.Or(flags.name, op.settings.Identity), home: cmp.Or(flags.home, op.settings.Home)}
	if made.home == "" {
		made.home = strings.ReplaceAll(made.name, ".", "-") + "-system"
	}
	return made
}

// roles are the objects that the operator needs, each role followed by its binding.
func (op *Operator) roles(made *roleMaker, flags rbacFlags) ([]any, error) {
	if !flags.rolesOnly {
		made.identity(flags.home == "")
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

// manifest is an object of which only the name matters.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// identity adds the ServiceAccount, and its Namespace unless that exists.
func (m *roleMaker) identity(namespace bool) { //nolint:revive // The caller decides.
	core := func(kind string, meta metav1.ObjectMeta) {
		m.roles = append(m.roles, manifest{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: meta})
	}
	if namespace {
		core("Namespace", metav1.ObjectMeta{Name: m.home})
	}
	core("ServiceAccount", metav1.ObjectMeta{Name: m.name, Namespace: m.home})
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
