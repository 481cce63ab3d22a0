package einmal

import (
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/object"
)

type applySettings struct {
	adopt, shared bool
	nested        []object.Path
}

// Adopt lets Apply take over an object that exists without a reference to the owner. Without it, Apply returns an error for such an object.
func Adopt() ApplyOption {
	return option{name: "Adopt", apply: func(settings *applySettings) error {
		settings.adopt = true
		return nil
	}}
}

// NotController makes the handled object an owner of the child that is not its controller. A child can have several owners, of which at most one
// is its controller. The garbage collector deletes the child when its last owner is gone.
//
// Apply then keeps the references to other owners, and is repeated if another client changes the child meanwhile. If several objects share a child,
// give NotController to each Apply of it, and Adopt to those that can find it existing: an Apply without NotController removes the references
// to other owners that the operator has set. Owns looks for controllers only, so use Watches for such children.
func NotController() ApplyOption {
	return option{name: "NotController", apply: func(settings *applySettings) error {
		settings.shared = true
		return nil
	}}
}

// NestedLabels copies the labels of the owner also into objects within the child, where these have none of the same name:
// NestedLabels("spec.template") into spec.template.metadata.labels, for the pods of a Deployment. The child must have an object at each path.
//
// A later change of the owner's labels changes the pod template, which replaces the pods of a Deployment. The API server refuses it for a Job,
// whose template is immutable. Leave labels that can change out of the selector of the child, which is immutable too.
func NestedLabels(paths ...string) ApplyOption {
	return option{name: "NestedLabels", apply: func(settings *applySettings) error {
		if len(paths) == 0 {
			return errors.New("option NestedLabels: must have at least one path, such as spec.template, got none")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option NestedLabels: %w", err)
			}
			if path[0] == "metadata" || path[0] == statusField {
				return fmt.Errorf("option NestedLabels: paths must be below the spec or another field of the child's own, got %s", text)
			}
			settings.nested = append(settings.nested, path)
		}
		return nil
	}}
}

// takeApply returns the settings of an Apply.
func takeApply(options []ApplyOption) (applySettings, error) {
	var settings applySettings
	known, err := optionsOf(options)
	for _, one := range known {
		err = errors.Join(err, one.apply(&settings))
	}
	return settings, err
}

// checkNested returns an error if the child has no object where labels are to be copied into.
func (s applySettings) checkNested(kind string, child object.Body) error {
	for _, path := range s.nested {
		found, _ := object.Get(child, path...)
		if _, is := found.(object.Body); !is {
			return fmt.Errorf("option NestedLabels: %s has no object at %s; name a field that has metadata, such as spec.template", kind, path)
		}
	}
	return nil
}
