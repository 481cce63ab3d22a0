package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Definition decodes a stored CustomResourceDefinition.
func Definition(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("decode the definition %s: %w", object.GetName(), err)
	}
	return definition, nil
}

// SetStatus writes the status of a definition into its object.
func SetStatus(object *unstructured.Unstructured, status apiextensionsv1.CustomResourceDefinitionStatus) {
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err == nil {
		object.Object["status"] = encoded
	}
}

// establish makes a new definition one whose kinds are served: at once, where a real API server takes a moment.
func establish(object *unstructured.Unstructured) {
	definition, err := Definition(object)
	if err != nil {
		return
	}
	now := object.GetCreationTimestamp()
	status := apiextensionsv1.CustomResourceDefinitionStatus{
		AcceptedNames:  definition.Spec.Names,
		StoredVersions: StoredVersions(definition),
		Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{
				Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: now,
				Reason: "NoConflicts", Message: "no conflicts found",
			},
			{
				Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: now,
				Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
			},
		},
	}
	SetStatus(object, status)
}

// StoredVersions are the versions that objects are or were stored in.
func StoredVersions(definition *apiextensionsv1.CustomResourceDefinition) []string {
	stored := definition.Status.StoredVersions
	for _, version := range definition.Spec.Versions {
		if !version.Storage {
			continue
		}
		if !slices.Contains(stored, version.Name) {
			stored = append(stored, version.Name)
		}
	}
	return stored
}

func validateDefinition(object, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if conversion := object.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter {
		path := field.NewPath("spec", "conversion", "strategy")
		return field.ErrorList{field.NotSupported(path, conversion.Strategy, []apiextensionsv1.ConversionStrategyType{apiextensionsv1.NoneConverter})}
	}
	is, err := internalOf(object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if old == nil {
		is.Status = apiextensions.CustomResourceDefinitionStatus{StoredVersions: is.Status.StoredVersions}
		return withoutMeta(validation.ValidateCustomResourceDefinition(context.Background(), is))
	}
	was, err := internalOf(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return withoutMeta(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), is, was))
}

// withoutMeta leaves out what is found by every kind's checks of the metadata, or is about fields that only a stored
// object has.
func withoutMeta(refused field.ErrorList) field.ErrorList {
	return refused.Filter(func(err error) bool {
		problem, is := err.(*field.Error) //nolint:errorlint // The library filters errors that it made itself.
		return is && problem.Field == "metadata.resourceVersion"
	})
}

func internalOf(definition *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil)
	return internal, err
}

// digest is the same for two definitions that make the same kinds.
func digest(definition *apiextensionsv1.CustomResourceDefinition) (string, error) {
	text, err := json.Marshal(definition.Spec)
	return definition.Name + " " + string(text), err
}
