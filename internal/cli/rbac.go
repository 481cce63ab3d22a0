package cli

import (
	"cmp"
	"flag"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/rbac"
)

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
	account := op.account(flags)
	if len(account.Home) > rbac.LongestNamespace {
		_, _ = fmt.Fprintf(failures, "%s rbac: the default namespace %q has more than %d characters: name one with --state-namespace\n",
			programName(), account.Home, rbac.LongestNamespace)
		return exitUsage
	}
	served := op.Settings.Namespaces
	if flags.namespaces.given() {
		served = flags.namespaces.parsed
	}
	rights, err := op.Rights(served)
	if err != nil {
		fail(failures, err)
		return exitFailed
	}
	objects := account.Objects(rights)
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

// account returns the ServiceAccount that the flags ask for.
func (op *Operator) account(flags rbacFlags) rbac.Account {
	name := cmp.Or(flags.name, op.Settings.Identity)
	return rbac.Account{
		Name: name, Home: cmp.Or(flags.home, op.Settings.Home, rbac.DefaultHome(name)),
		WithAccount: !flags.rolesOnly, WithNamespace: !flags.rolesOnly && flags.home == "",
	}
}
