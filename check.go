package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/register"
)

// declaredKind is a kind as it was declared.
type declaredKind struct {
	kind   engine.Kind
	goType reflect.Type
	// related lists the kinds whose objects trigger its handlers.
	related []relatedKind
	// applies is true if a handler of the kind has the option Applies.
	applies bool
}

// longestIdentity keeps all names that contain the identity within the limit of Kubernetes for field managers.
const longestIdentity = 100

// check returns all registration mistakes. It does not need an API server.
func (op *Operator) check() error {
	found := append([]error(nil), op.mistakes...)
	identity := op.settings.Identity
	if len(validation.IsDNS1123Subdomain(identity)) > 0 || !strings.Contains(identity, ".") || len(identity) > longestIdentity {
		found = append(found, fmt.Errorf("identity %q: must be a domain name that you own, in lower case, with at least one dot and at most %d characters, such as claims.example.com",
			identity, longestIdentity))
	}
	found = append(found, op.activities.check(), cli.CheckFlags(op.ownFlags))
	if len(op.everyKind()) == 0 {
		found = append(found, errors.New("no kinds: declare at least one with einmal.For or einmal.ForEvery"))
	}
	seen := map[string]bool{}
	for _, declared := range op.kinds {
		name := declared.kind.GVK.String()
		if seen[name] {
			found = append(found, fmt.Errorf("kind %s is declared twice: declare all its handlers on the Kind that the first For returns", name))
		}
		seen[name] = true
		found = append(found, declared.check())
	}
	found = append(found, op.checkSelected())
	_, err := op.rights(op.settings.Namespaces)
	_, unwatched := op.watched()
	return errors.Join(append(found, err, unwatched, op.checkIndexes())...)
}

// checkPlace returns an error if the state namespace is missing. It is separate from check, because a flag of the verb
// run can set it.
func (op *Operator) checkPlace() error {
	secrets := false
	for _, declared := range op.kinds {
		secrets = secrets || declared.kind.Secret() && declared.kind.Recorded()
	}
	for _, declared := range op.selected {
		secrets = secrets || declared.mayBeSecrets() && declared.kind.Recorded()
	}
	if secrets && op.settings.Home == "" {
		return errors.New("kind Secret: no namespace for the digest key; " +
			"outside of a pod, set one with the option StateNamespace or --state-namespace")
	}
	return nil
}

// check returns all mistakes in the declarations of the kind's handlers.
func (d *declaredKind) check() error {
	declared := register.Kind{Name: d.kind.GVK.Kind, Type: d.goType, Handlers: d.handlers()}
	return declared.Check() //nolint:wrapcheck // It names each handler.
}
