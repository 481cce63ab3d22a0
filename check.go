package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/engine"
)

// declaredKind is a kind as it was declared.
type declaredKind struct {
	kind   engine.Kind
	goType reflect.Type
	// related are the kinds whose objects wake its handlers.
	related []relatedKind
}

// longestIdentity leaves room for the longest name that is made of an identity, within the limits of field managers.
const longestIdentity = 100

// check finds all registration mistakes. It needs no API server.
func (op *Operator) check() error {
	found := append([]error(nil), op.mistakes...)
	for _, problem := range validation.IsDNS1123Subdomain(op.settings.Identity) {
		found = append(found, fmt.Errorf("identity %q: %s; use a domain of your own, such as claims.example.com", op.settings.Identity, problem))
	}
	if !strings.Contains(op.settings.Identity, ".") || len(op.settings.Identity) > longestIdentity {
		found = append(found, fmt.Errorf("identity %q: give a domain of your own with at most %d characters, such as claims.example.com: finalizer and annotation are named after it",
			op.settings.Identity, longestIdentity))
	}
	found = append(found, op.activities.check())
	if len(op.everyKind()) == 0 {
		found = append(found, errors.New("no kind is declared: use einmal.For or einmal.ForEvery"))
	}
	seen := map[string]bool{}
	for _, declared := range op.kinds {
		name := declared.kind.GVK.String()
		if seen[name] {
			found = append(found, fmt.Errorf("kind %s is declared twice: declare all its handlers on what one For returns", name))
		}
		seen[name] = true
		found = append(found, declared.check())
	}
	found = append(found, op.checkSelected())
	_, err := op.rights(op.settings.Namespaces)
	_, unwatched := op.watched()
	return errors.Join(append(found, err, unwatched, op.checkIndexes())...)
}

// checkPlace finds what is missing for a start. The flags of the verb run may give it, after check was asked.
func (op *Operator) checkPlace() error {
	secrets := false
	for _, declared := range op.kinds {
		secrets = secrets || declared.kind.Secret() && declared.kind.Recorded()
	}
	for _, declared := range op.selected {
		secrets = secrets || declared.mayBeSecrets() && declared.kind.Recorded()
	}
	if secrets && op.settings.Home == "" {
		return errors.New("kind Secret: no namespace is known for the key of its digests; " +
			"outside of a pod, name one with einmal.StateNamespace or --state-namespace")
	}
	return nil
}

// checkID finds what is wrong with the id of a handler.
func checkID(id string) error {
	if regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`).MatchString(id) {
		return nil
	}
	return errors.New("an id has 1 to 63 letters, digits, dashes, dots and underscores, and begins and ends with a letter or digit")
}

func (d *declaredKind) check() error {
	var found []error
	kind := d.kind.GVK.Kind
	if len(d.handlers()) == 0 {
		found = append(found, fmt.Errorf("kind %s has no handlers: declare one, such as OnCreate", kind))
	}
	ids := map[string]bool{}
	for _, declared := range d.handlers() {
		where := fmt.Sprintf("handler %q of %s", declared.ID, kind)
		if err := checkID(declared.ID); err != nil {
			found = append(found, fmt.Errorf("%s: %w", where, err))
		}
		if ids[declared.ID] {
			found = append(found, fmt.Errorf("%s is declared twice: records refer to handlers by id, so give each its own", where))
		}
		ids[declared.ID] = true
		if declared.Call == nil {
			found = append(found, fmt.Errorf("%s has no function", where))
		}
		for _, field := range append(slices.Clone(declared.Fields), conditions(declared.Declaration)...) {
			if err := d.checkField(declared.Verb, field); err != nil {
				found = append(found, fmt.Errorf("%s: option Field: %w", where, err))
			}
		}
	}
	return errors.Join(slices.Concat(found, d.checkFormer(), d.checkOwned())...)
}

// conditions are the fields that only conditions of a handler name. Those on labels and annotations are always right.
func conditions(declared handler.Declaration) []object.Path {
	if declared.Scope == nil {
		return nil
	}
	return slices.DeleteFunc(declared.Scope.Paths(), func(field object.Path) bool {
		named := slices.ContainsFunc(declared.Fields, func(other object.Path) bool { return slices.Equal(field, other) })
		return named || field.Under("metadata", "labels") || field.Under("metadata", "annotations")
	})
}

// checkField refuses fields that can never change in the handler's eyes.
func (d *declaredKind) checkField(verb cause.Cause, field object.Path) error {
	if field[0] == "metadata" && !field.Under("metadata", "labels") && !field.Under("metadata", "annotations") {
		return fmt.Errorf("%s is not looked at: of the metadata only labels and annotations are", field)
	}
	switch verb { //nolint:exhaustive // The others look at fields.
	case cause.Delete:
		return fmt.Errorf("%s: a delete handler answers the deletion, not a field; leave the option out", field)
	case engine.Event:
		return fmt.Errorf("%s: an event handler is called for each event, not for a field; leave the option out", field)
	}
	if d.goType == reflect.TypeFor[unstructured.Unstructured]() || field[0] == "metadata" {
		return nil
	}
	return fieldOf(d.goType, field, field)
}

// fieldOf follows a path through a Go type by its JSON names. Where the type is open (a map, an interface, a type that
// writes its own JSON) every path is possible.
func fieldOf(in reflect.Type, rest, whole object.Path) error {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if len(rest) == 0 || in.Kind() == reflect.Map || in.Kind() == reflect.Interface {
		return nil
	}
	if in.Kind() != reflect.Struct {
		return fmt.Errorf("%s: %s is a %s, which has no field %s (lists are looked at as a whole)", whole, in, in.Kind(), rest[0])
	}
	if child, found := jsonField(in, rest[0]); found {
		return fieldOf(child, rest[1:], whole)
	}
	return fmt.Errorf("%s: %s has no field %s", whole, in, rest[0])
}

func jsonField(in reflect.Type, name string) (reflect.Type, bool) {
	for field := range in.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := tag == "" && (field.Anonymous || strings.Contains(options, "inline"))
		switch {
		case inline && field.Type.Kind() == reflect.Struct:
			if found, has := jsonField(field.Type, name); has {
				return found, true
			}
		case tag == name || tag == "" && field.Name == name:
			return field.Type, true
		}
	}
	return nil, false
}
