package kind

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

// ClaimFinalizer keeps a PersistentVolumeClaim while a pod uses it. Admission adds it to each new claim.
const ClaimFinalizer = "kubernetes.io/pvc-protection"

// goRules are the rules of a built-in kind, whose form is a Go type.
type goRules struct {
	builtin

	kind schema.GroupVersionKind
}

// Shape decodes the object into its Go type, sets defaults, and encodes it again.
func (r *goRules) Shape(object *unstructured.Unstructured) ([]string, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	typed := r.example.DeepCopyObject()
	strict, err := kjson.UnmarshalStrict(text, typed)
	if err != nil {
		return nil, err
	}
	apiextensionsscheme.Scheme.Default(typed)
	if r.defaults != nil {
		r.defaults(typed)
	}
	shaped, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	object.Object = shaped
	object.SetGroupVersionKind(r.kind)
	return unknownFields(strict), nil
}

func unknownFields(strict []error) []string {
	var paths []string
	for _, problem := range strict {
		var unknown kjson.FieldError
		if as, is := problem.(kjson.FieldError); is { //nolint:errorlint // The library returns it unwrapped.
			unknown = as
			paths = append(paths, unknown.FieldPath())
		}
	}
	return paths
}

// Prepare keeps the status from writes of the object, and the spec from writes of the status.
func (r *goRules) Prepare(object, old *unstructured.Unstructured, subresource string) {
	switch {
	case old == nil:
		r.prepareNew(object)
		return
	case subresource == Status:
		spec, found := old.Object["spec"]
		object.Object = maps.Clone(object.Object)
		delete(object.Object, "spec")
		if found {
			object.Object["spec"] = spec
		}
	case r.status:
		keepStatus(object, old)
		r.keepStored(object)
	}
	if r.kind.Kind == "Service" {
		allocate(object, old)
	}
	if r.generation && !equality.Semantic.DeepEqual(object.Object["spec"], old.Object["spec"]) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

// keepStored enters into the status of a definition in which version objects are stored from now on.
func (r *goRules) keepStored(object *unstructured.Unstructured) {
	if r.kind.Kind != "CustomResourceDefinition" {
		return
	}
	definition, err := Definition(object)
	if err != nil {
		return
	}
	object.Object = maps.Clone(object.Object)
	definition.Status.StoredVersions = StoredVersions(definition)
	SetStatus(object, definition.Status)
}

func (r *goRules) prepareNew(object *unstructured.Unstructured) {
	if r.status {
		delete(object.Object, "status")
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "generation")
	if r.generation {
		object.SetGeneration(1)
	}
	switch r.kind.Kind {
	case "Namespace":
		defaulted := object.GetLabels()
		if defaulted == nil {
			defaulted = map[string]string{}
		}
		defaulted[corev1.LabelMetadataName] = object.GetName()
		object.SetLabels(defaulted)
		_ = unstructured.SetNestedStringSlice(object.Object, []string{"kubernetes"}, "spec", "finalizers")
		_ = unstructured.SetNestedField(object.Object, "Active", "status", "phase")
	case "PersistentVolumeClaim":
		if finalizers := object.GetFinalizers(); !slices.Contains(finalizers, ClaimFinalizer) {
			object.SetFinalizers(append(finalizers, ClaimFinalizer))
		}
		_ = unstructured.SetNestedField(object.Object, "Pending", "status", "phase")
	case "Pod":
		_ = unstructured.SetNestedField(object.Object, "Pending", "status", "phase")
	case "Service":
		_ = unstructured.SetNestedMap(object.Object, map[string]any{}, "status", "loadBalancer")
		allocate(object, nil)
	case "Job":
		object.Object["status"] = map[string]any{}
		selectOwn(object)
	case "CronJob", "Node":
		object.Object["status"] = map[string]any{}
	case "PodDisruptionBudget":
		object.Object["status"] = map[string]any{"disruptionsAllowed": int64(0), "currentHealthy": int64(0), "desiredHealthy": int64(0), "expectedPods": int64(0)}
	case "Ingress":
		object.Object["status"] = map[string]any{"loadBalancer": map[string]any{}}
	case "Deployment":
		object.Object["status"] = map[string]any{}
	case "StatefulSet":
		object.Object["status"] = map[string]any{"replicas": int64(0), "availableReplicas": int64(0)}
	case "CustomResourceDefinition":
		establish(object)
	}
}

// Validate checks the metadata, and what is most often wrong with objects of the kind.
func (r *goRules) Validate(object, old *unstructured.Unstructured, _ string) field.ErrorList {
	name := r.name
	if name == nil {
		name = metavalidation.NameIsDNSSubdomain
	}
	var refused field.ErrorList
	if old == nil {
		refused = metavalidation.ValidateObjectMetaAccessor(object, !r.cluster, name, field.NewPath("metadata"))
		refused = append(refused, validate.Finalizers(object.GetFinalizers())...)
	}
	if r.validate != nil {
		refused = append(refused, r.validate(object, old)...)
	}
	return refused
}

// validator checks an object of a built-in kind.
type validator func(object, old *unstructured.Unstructured) field.ErrorList

// both makes a validator of a function over the Go type; old is nil for a new object.
func both[T any](check func(object, old *T) field.ErrorList) validator {
	return func(object, old *unstructured.Unstructured) field.ErrorList {
		typed, err := decodeAs[T](object)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		if old == nil {
			return check(typed, nil)
		}
		before, err := decodeAs[T](old)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return check(typed, before)
	}
}

// decodeAs makes the Go value of an object.
func decodeAs[T any](from *unstructured.Unstructured) (*T, error) {
	into := new(T)
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into)
}

// only makes a function that sets defaults of one over the Go type.
func only[T any](set func(*T)) func(runtime.Object) {
	return func(object runtime.Object) {
		if typed, is := any(object).(*T); is {
			set(typed)
		}
	}
}
