package kind

import (
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Compile makes the kinds of a CustomResourceDefinition, one for each version that is served.
func Compile(definition *apiextensionsv1.CustomResourceDefinition) ([]*Kind, error) {
	rules := map[string]*customRules{}
	published := map[string]*spec.Schema{}
	var storage schema.GroupVersion
	for _, version := range definition.Spec.Versions {
		made, err := newCustomRules(definition, version)
		if err != nil {
			return nil, fmt.Errorf("%s, version %s: %w", definition.Name, version.Name, err)
		}
		rules[version.Name], published[version.Name] = made, publish(made)
		if version.Storage {
			storage = made.kind.GroupVersion()
		}
	}
	types, err := typesOf(published, rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", definition.Name, err)
	}
	var kinds []*Kind
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		served := rules[version.Name]
		made := &Kind{
			GroupVersionKind: served.kind,
			Names:            namesOf(definition.Spec.Names),
			Namespaced:       served.namespaced,
			HasStatus:        served.hasStatus,
			LacksScale:       version.Subresources != nil && version.Subresources.Scale != nil,
			Schema:           published[version.Name],
			Rules:            served,
			hub:              storage,
			storage:          rules[storage.Version],
			convert:          setVersion,
		}
		for _, selectable := range version.SelectableFields {
			made.selectable = append(made.selectable, strings.TrimPrefix(selectable.JSONPath, "."))
		}
		if made.managers, err = customManagers(made, rules, types); err != nil {
			return nil, err
		}
		kinds = append(kinds, made)
	}
	return kinds, nil
}

func namesOf(names apiextensionsv1.CustomResourceDefinitionNames) Names {
	named := Names{
		Plural: names.Plural, Singular: names.Singular, List: names.ListKind,
		ShortNames: names.ShortNames, Categories: names.Categories,
	}
	if named.Singular == "" {
		named.Singular = strings.ToLower(names.Kind)
	}
	if named.List == "" {
		named.List = names.Kind + "List"
	}
	return named
}

// setVersion is conversion with the strategy None.
func setVersion(object *unstructured.Unstructured, to schema.GroupVersion) {
	object.SetAPIVersion(to.String())
}

func newCustomRules(definition *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) (*customRules, error) {
	made := &customRules{
		kind:       schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind},
		namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		hasStatus:  version.Subresources != nil && version.Subresources.Status != nil,
	}
	internal := &apiextensions.CustomResourceValidation{}
	if version.Schema != nil {
		err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, internal, nil)
		if err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	made.schema = structural.DeepCopy()
	if err := defaulting.PruneDefaults(made.schema); err != nil {
		return nil, fmt.Errorf("prune the defaults: %w", err)
	}
	if made.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	if internal.OpenAPIV3Schema != nil {
		if status, found := internal.OpenAPIV3Schema.Properties["status"]; found && made.hasStatus {
			if made.statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
				return nil, fmt.Errorf("compile the schema of the status: %w", err)
			}
		}
	}
	made.expressions = cel.NewValidator(made.schema, true, celconfig.PerCallLimit)
	return made, nil
}

// typesOf makes what server-side apply knows of all versions of a kind.
func typesOf(published map[string]*spec.Schema, rules map[string]*customRules) (managedfields.TypeConverter, error) {
	models := metadataModels()
	for version, described := range published {
		models[modelName(rules[version].kind)] = described
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, fmt.Errorf("read the schema for server-side apply: %w", err)
	}
	return types, nil
}

func customManagers(k *Kind, rules map[string]*customRules, types managedfields.TypeConverter) (map[string]*managedfields.FieldManager, error) {
	use := converter{convert: setVersion, rules: func(version schema.GroupVersion) Rules {
		if found := rules[version.Version]; found != nil {
			return found
		}
		return nil
	}}
	reset := map[string]*fieldpath.Set{"": fieldpath.NewSet()}
	if k.HasStatus {
		reset[""] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		reset[Status] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	return k.newManagers(types, use, reset)
}
