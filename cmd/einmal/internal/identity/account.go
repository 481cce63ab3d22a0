// Package identity runs an operator under its own ServiceAccount, so that it has the same permissions as in a real
// cluster: it chooses the account, requests a token for it and writes a kubeconfig that uses the token.
package identity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// Account identifies a ServiceAccount.
type Account struct {
	Namespace, Name string
}

// String returns the account in the form of the flag --service-account.
func (a Account) String() string { return a.Namespace + "/" + a.Name }

// User returns the user name of the account in the API server.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// Choose returns the account to run an operator as: wanted ("namespace/name") if it is not empty, else the only
// ServiceAccount among the objects. defaultNamespace is used for an account that names no namespace.
func Choose(objects []manifest.Object, wanted, defaultNamespace string) (Account, error) {
	if wanted != "" {
		namespace, name, ok := strings.Cut(wanted, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return Account{}, fmt.Errorf("flag --service-account: must have the form NAMESPACE/NAME, got %q", wanted)
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
		return Account{}, errors.New("choose the operator's ServiceAccount: none found in its RBAC manifests\n" +
			"remedy: add one there, or name an existing one with --service-account NAMESPACE/NAME")
	}
	var found strings.Builder
	for _, account := range accounts {
		fmt.Fprintf(&found, "\n  %s in %s", account.Name(), account.Origin)
	}
	return Account{}, fmt.Errorf("choose the operator's ServiceAccount: %d found in its RBAC manifests:%s\n"+
		"remedy: name one with --service-account NAMESPACE/NAME", len(accounts), found.String())
}
