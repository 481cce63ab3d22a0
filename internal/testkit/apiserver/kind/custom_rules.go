package kind

import (
	"context"
	"maps"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// customRules are the rules of one version of a custom kind, made from its schema by the API server's own libraries.
type customRules struct {
	kind            schema.GroupVersionKind
	namespaced      bool
	hasStatus       bool
	schema          *structuralschema.Structural
	validator       validation.SchemaValidator
	statusValidator validation.SchemaValidator
	expressions     *cel.Validator
}

// Shape prunes and sets defaults.
func (r *customRules) Shape(object *unstructured.Unstructured) ([]string, error) {
	unknown, err := r.prune(object)
	if err != nil {
		return nil, err
	}
	defaulting.Default(object.Object, r.schema)
	return unknown, nil
}

// prune does to a custom object what decoding into a Go type does to a built-in one.
func (r *customRules) prune(object *unstructured.Unstructured) ([]string, error) {
	version, kind := object.GetAPIVersion(), object.GetKind()
	metadata, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object.Object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(object.Object, r.schema, true, track)...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, r.schema)
	invalid, paths := objectmeta.CoerceWithOptions(nil, object.Object, r.schema, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return nil, invalid
	}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	if found {
		if err := objectmeta.SetObjectMeta(object.Object, metadata); err != nil {
			return nil, err
		}
	}
	return append(unknown, paths...), nil
}

// Prepare keeps the status from writes of the object, and everything else from writes of the status.
func (r *customRules) Prepare(object, old *unstructured.Unstructured, subresource string) {
	switch {
	case old == nil:
		if r.hasStatus {
			delete(object.Object, "status")
		}
		object.SetGeneration(1)
	case subresource == Status:
		status, found := object.Object["status"]
		managed := object.GetManagedFields()
		object.Object = maps.Clone(old.DeepCopy().Object)
		object.SetManagedFields(managed)
		if found {
			object.Object["status"] = status
		} else {
			delete(object.Object, "status")
		}
	default:
		if r.hasStatus {
			keepStatus(object, old)
		}
		if !equality.Semantic.DeepEqual(withoutMetadata(object.Object), withoutMetadata(old.Object)) {
			object.SetGeneration(old.GetGeneration() + 1)
		}
	}
}

func keepStatus(object, old *unstructured.Unstructured) {
	if status, found := old.Object["status"]; found {
		object.Object["status"] = status
	} else {
		delete(object.Object, "status")
	}
}

// Validate checks an object against its schema and the rules in it.
func (r *customRules) Validate(object, old *unstructured.Unstructured, subresource string) field.ErrorList {
	if refused := r.typeMeta(object); len(refused) > 0 {
		return refused
	}
	if old == nil {
		return r.validateNew(object)
	}
	related := common.NewCorrelatedObject(object.Object, old.Object, &model.Structural{Structural: r.schema})
	refused := metavalidation.ValidateObjectMetaAccessorUpdate(object, old, field.NewPath("metadata"))
	if subresource == Status {
		if status, found := object.Object["status"]; found {
			refused = append(refused, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"],
				r.statusValidator, validation.WithRatcheting(related.Key("status")))...)
		}
	} else {
		refused = append(refused, validation.ValidateCustomResourceUpdate(nil, object.Object, old.Object,
			r.validator, validation.WithRatcheting(related))...)
		refused = append(refused, objectmeta.Validate(context.Background(), nil, object.Object, r.schema, false)...)
	}
	if len(listtype.ValidateListSetsAndMaps(nil, r.schema, old.Object)) == 0 {
		refused = append(refused, listtype.ValidateListSetsAndMaps(nil, r.schema, object.Object)...)
	}
	return r.express(refused, object, old.Object, cel.WithRatcheting(related))
}

func (r *customRules) validateNew(object *unstructured.Unstructured) field.ErrorList {
	refused := metavalidation.ValidateObjectMetaAccessor(object, r.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	refused = append(refused, validation.ValidateCustomResource(nil, object.Object, r.validator)...)
	refused = append(refused, objectmeta.Validate(context.Background(), nil, object.Object, r.schema, false)...)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, r.schema, object.Object)...)
	return r.express(refused, object, nil)
}

func (r *customRules) typeMeta(object *unstructured.Unstructured) field.ErrorList {
	var refused field.ErrorList
	if object.GetKind() != r.kind.Kind {
		refused = append(refused, field.Invalid(field.NewPath("kind"), object.GetKind(), "must be "+r.kind.Kind))
	}
	if version := r.kind.GroupVersion().String(); object.GetAPIVersion() != version {
		refused = append(refused, field.Invalid(field.NewPath("apiVersion"), object.GetAPIVersion(), "must be "+version))
	}
	return refused
}

// express evaluates the rules in the schema, if the object is sound enough for them.
func (r *customRules) express(refused field.ErrorList, object *unstructured.Unstructured, old any, options ...cel.Option) field.ErrorList {
	if r.expressions == nil {
		return refused
	}
	for _, problem := range refused {
		switch problem.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(refused, field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		default:
		}
	}
	broken, _ := r.expressions.Validate(context.Background(), nil, r.schema, object.Object, old, celconfig.RuntimeCELCostBudget, options...)
	return append(refused, broken...)
}
