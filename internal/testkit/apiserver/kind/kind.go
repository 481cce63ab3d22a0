// Package kind knows what an API server knows of each kind that it serves: names, schema, defaults, and what may change.
package kind

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

// Status is the subresource that is served.
const Status = "status"

// Rules is what differs from kind to kind when an object is written.
type Rules interface {
	// Shape brings what a client sent into the form of the kind, in place: unknown fields go, defaults come. It returns
	// the paths of the unknown fields.
	Shape(object *unstructured.Unstructured) (unknown []string, err error)
	// Prepare resets what the request may not write. There is no old object when a new one is created.
	Prepare(object, old *unstructured.Unstructured, subresource string)
	// Validate tells what is wrong with an object that is about to be written.
	Validate(object, old *unstructured.Unstructured, subresource string) field.ErrorList
}

// Names is what a kind is called.
type Names struct {
	Plural, Singular, List string
	ShortNames, Categories []string
}

// Kind is one served version of a kind.
type Kind struct {
	schema.GroupVersionKind
	Names
	Namespaced bool
	// HasStatus tells of a status subresource.
	HasStatus bool
	// LacksScale tells of a scale subresource of a custom kind, which only a real server serves.
	LacksScale bool
	// CreateOnUpdate makes a PUT of a missing object create it.
	CreateOnUpdate bool
	// Unconditional allows a PUT without a resource version.
	Unconditional bool
	// Example is an empty Go value of a built-in kind; nil for a custom one.
	Example runtime.Object
	// Orphans makes a deletion that does not say what becomes of owned objects leave them.
	Orphans bool
	// Checked are the fields of a built-in kind that are checked; nil if all are.
	Checked validate.Checked
	// Schema is what is published of a custom kind; nil for a built-in one.
	Schema *spec.Schema
	// Since is the revision at which the schema became this one.
	Since int64
	Rules

	// hub is the version that objects are stored in.
	hub      schema.GroupVersion
	storage  Rules
	managers map[string]*managedfields.FieldManager
	convert  func(object *unstructured.Unstructured, to schema.GroupVersion)
	// selectable lists further fields that can be selected by.
	selectable []string
}

// Resource is the name of the resource with its group, under which its objects are stored.
func (k *Kind) Resource() string {
	if k.hub.Group == "" {
		return k.Plural
	}
	return k.Plural + "." + k.hub.Group
}

// GroupResource is the resource as errors name it.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// Serves reports whether the kind has the subresource.
func (k *Kind) Serves(subresource string) bool {
	return subresource == Status && k.HasStatus
}

// Custom reports whether the kind comes from a CustomResourceDefinition.
func (k *Kind) Custom() bool { return k.Example == nil }

// Manager keeps the managed fields of the kind, or of its subresource.
func (k *Kind) Manager(subresource string) *managedfields.FieldManager {
	return k.managers[subresource]
}

// newManagers makes the managers of a kind and its subresources. Each resets the fields that it does not write.
func (k *Kind) newManagers(types managedfields.TypeConverter, use converter, reset map[string]*fieldpath.Set) (map[string]*managedfields.FieldManager, error) {
	version := fieldpath.APIVersion(k.GroupVersion().String())
	managers := map[string]*managedfields.FieldManager{}
	for subresource, set := range reset {
		filter := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{version: set})
		made, err := managedfields.NewDefaultCRDFieldManager(types, use, use, use, k.GroupVersionKind, k.hub, subresource, filter)
		if err != nil {
			return nil, fmt.Errorf("keep the managed fields of %s: %w", k.Kind, err)
		}
		managers[subresource] = made
	}
	return managers, nil
}

// View shows a stored object in this version. It may be the stored object itself: copy it before changing it.
func (k *Kind) View(stored *unstructured.Unstructured, revision int64) *unstructured.Unstructured {
	current := k.hub == k.GroupVersion()
	if current && (k.storage == nil || revision > k.Since) {
		return stored
	}
	seen := stored.DeepCopy()
	if k.storage != nil {
		_, _ = k.storage.Shape(seen) // It was valid when it was written; what is not known any more goes.
	}
	if !current {
		k.convert(seen, k.GroupVersion())
		if rules, custom := k.Rules.(*customRules); custom {
			_, _ = rules.prune(seen)
		}
	}
	return seen
}

// Stored brings an object of this version into the form that is stored.
func (k *Kind) Stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	if k.hub == k.GroupVersion() {
		return object
	}
	kept := object.DeepCopy()
	k.convert(kept, k.hub)
	return kept
}

// New is an object with nothing but its type.
func (k *Kind) New() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.GroupVersionKind)
	return object
}

// Fields are what a field selector can ask for.
func (k *Kind) Fields(object *unstructured.Unstructured) fields.Set {
	set := fields.Set{"metadata.name": object.GetName()}
	if k.Namespaced {
		set["metadata.namespace"] = object.GetNamespace()
	}
	for _, path := range k.selectable {
		value, _, _ := unstructured.NestedString(object.Object, strings.Split(path, ".")...)
		set[path] = value
	}
	return set
}

// Selects reports whether a field selector may name the field.
func (k *Kind) Selects(label string) bool {
	_, found := k.Fields(k.New())[label]
	return found
}

// converter lets managed fields of several versions be compared; it also makes objects and sets their defaults.
type converter struct {
	convert func(object *unstructured.Unstructured, to schema.GroupVersion)
	rules   func(version schema.GroupVersion) Rules
}

// Convert is not used by field managers.
func (c converter) Convert(in, _, _ any) error {
	return runtime.NewNotRegisteredErrForKind("", schema.GroupVersionKind{Kind: strings.ToLower(typeName(in))})
}

func typeName(value any) string {
	if object, is := value.(runtime.Object); is {
		return object.GetObjectKind().GroupVersionKind().Kind
	}
	return ""
}

// ConvertToVersion returns a copy of the object in the version.
func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	object, is := in.DeepCopyObject().(*unstructured.Unstructured)
	if !is {
		return nil, runtime.NewNotRegisteredErrForTarget("", nil, target)
	}
	kind, found := target.KindForGroupVersionKinds([]schema.GroupVersionKind{object.GroupVersionKind()})
	if version, is := target.(schema.GroupVersion); is {
		kind, found = version.WithKind(object.GetKind()), true
	}
	if !found {
		return nil, runtime.NewNotRegisteredErrForTarget("", nil, target)
	}
	if kind.GroupVersion() != object.GroupVersionKind().GroupVersion() {
		c.convert(object, kind.GroupVersion())
	}
	return object, nil
}

// ConvertFieldLabel is not used by field managers.
func (c converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (newLabel, newValue string, err error) {
	return label, value, nil
}

// New makes an empty object.
func (c converter) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// Default sets defaults after an apply.
func (c converter) Default(in runtime.Object) {
	object, is := in.(*unstructured.Unstructured)
	if !is {
		return
	}
	if rules := c.rules(object.GroupVersionKind().GroupVersion()); rules != nil {
		_, _ = rules.Shape(object) // What is invalid is refused when the object is validated.
	}
}

// withoutMetadata copies the top of an object without its metadata.
func withoutMetadata(object map[string]any) map[string]any {
	kept := maps.Clone(object)
	delete(kept, "metadata")
	return kept
}
