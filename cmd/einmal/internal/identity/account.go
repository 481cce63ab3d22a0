// Package identity gives an operator the rights that it will have in a real cluster, and no others: it picks its
// ServiceAccount, keeps a token of it fresh, and writes the kubeconfig that uses the token.
package identity

import (
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// Account is a ServiceAccount.
type Account struct {
	Namespace, Name string
}

// String writes the account as the flag --service-account takes it.
func (a Account) String() string { return a.Namespace + "/" + a.Name }

// User is the name under which the API server knows the account.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// Choose returns the account to run an operator as: the wanted one ("namespace/name") if one is wanted, else the only
// one among the objects. Accounts that name no namespace are in defaultNamespace.
func Choose(objects []manifest.Object, wanted, defaultNamespace string) (Account, error) {
	if wanted != "" {
		namespace, name, ok := strings.Cut(wanted, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return Account{}, fmt.Errorf("--service-account %q is not of the form namespace/name", wanted)
		}
		return Account{Namespace: namespace, Name: name}, nil
	}
	accounts := manifest.OfKind(objects, "", "ServiceAccount")
	switch len(accounts) {
	case 1:
		account := Account{Namespace: accounts[0].GetNamespace(), Name: accounts[0].GetName()}
		if account.Namespace == "" {
			account.Namespace = defaultNamespace
		}
		return account, nil
	case 0:
		return Account{}, fmt.Errorf("no ServiceAccount found in the operator's RBAC manifests, so it is not known what " +
			"to run it as\nremedy: add one there, or name one that exists with --service-account namespace/name")
	}
	var found strings.Builder
	for _, account := range accounts {
		fmt.Fprintf(&found, "\n  %s in %s", account.Name(), account.Origin)
	}
	return Account{}, fmt.Errorf("%d ServiceAccounts found in the operator's RBAC manifests, so it is not known which "+
		"to run it as:%s\nremedy: name one with --service-account namespace/name", len(accounts), found.String())
}
