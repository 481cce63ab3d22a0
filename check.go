package einmal

import (
	"errors"
	"fmt"
	"maps"
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
	found = append(found, op.activities.check(), op.checkOwnFlags())
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

// checkID returns an error if an id of a handler is invalid.
func checkID(id string) error {
	if regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`).MatchString(id) {
		return nil
	}
	return errors.New("id must have 1 to 63 letters, digits, dashes, dots and underscores, and begin and end with a letter or digit")
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
			found = append(found, fmt.Errorf("%s is declared twice: give each handler its own id, since records refer to it", where))
		}
		ids[declared.ID] = true
		if declared.Call == nil {
			found = append(found, fmt.Errorf("%s has no function", where))
		}
		for _, field := range append(slices.Clone(declared.Fields), conditions(declared.Declaration)...) {
			if err := d.checkField(declared.Verb, field); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
		}
	}
	return errors.Join(slices.Concat(found, d.checkFormer(), d.checkOwned())...)
}

// conditions returns the fields that occur only in filters of a handler. Labels and annotations are left out: they are
// always allowed.
func conditions(declared handler.Declaration) []object.Path {
	if declared.Scope == nil {
		return nil
	}
	return slices.DeleteFunc(declared.Scope.Paths(), func(field object.Path) bool {
		named := slices.ContainsFunc(declared.Fields, func(other object.Path) bool { return slices.Equal(field, other) })
		return named || field.Under("metadata", "labels") || field.Under("metadata", "annotations")
	})
}

// checkField returns an error for a field that the handler would never see change.
func (d *declaredKind) checkField(verb cause.Cause, field object.Path) error {
	if field[0] == "metadata" && !field.Under("metadata", "labels") && !field.Under("metadata", "annotations") {
		return fmt.Errorf("field %s: metadata other than labels and annotations is not compared", field)
	}
	switch verb { //nolint:exhaustive // The others compare fields.
	case cause.Delete:
		return fmt.Errorf("field %s: filters of a delete handler cannot use fields, because fields change: use Labels, Annotations or When", field)
	case engine.Event:
		return fmt.Errorf("field %s: filters of an event handler cannot use fields: use Labels, Annotations or When", field)
	}
	if d.goType == reflect.TypeFor[unstructured.Unstructured]() || field[0] == "metadata" {
		return nil
	}
	return fieldOf(d.goType, field, field)
}

// fieldOf follows a path through a Go type by its JSON names, and returns an error if the path does not exist. In an
// open type (a map, an interface, a type that marshals itself) every path is possible.
func fieldOf(in reflect.Type, rest, whole object.Path) error {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if len(rest) == 0 || in.Kind() == reflect.Map || in.Kind() == reflect.Interface {
		return nil
	}
	if in.Kind() != reflect.Struct {
		return fmt.Errorf("field %s: %s is a %s, which has no field %s (lists are compared as a whole)", whole, in, in.Kind(), rest[0])
	}
	if child, found := jsonField(in, rest[0]); found {
		return fieldOf(child, rest[1:], whole)
	}
	return fmt.Errorf("field %s: %s has no field %s%s", whole, in, rest[0], suggestion(in, rest[0]))
}

// suggestion returns a hint with the field that was probably meant, or with all fields if there are few.
func suggestion(in reflect.Type, name string) string {
	names := slices.Sorted(maps.Keys(jsonNames(in)))
	for _, known := range names {
		if strings.EqualFold(known, name) || distance(known, name) <= 2 && len(name) > 2 {
			return fmt.Sprintf("; did you mean %s?", known)
		}
	}
	if len(names) > 0 && len(names) <= 12 {
		return "; it has " + strings.Join(names, ", ")
	}
	return ""
}

// distance returns the edit distance of two strings: the number of insertions, deletions and substitutions.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
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
