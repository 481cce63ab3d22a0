package kind

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	schemaPrefix  = "#/components/schemas/"
	kindExtension = "x-kubernetes-group-version-kind"
)

// Document is the OpenAPI document of one group and version, as text, and its hash.
type Document struct {
	Text []byte
	Hash string
}

// Document publishes kinds of one group and version. It is made once for as long as none of them changes.
func (c *Compiler) Document(kinds []*Kind) (Document, error) {
	var key strings.Builder
	for _, k := range kinds {
		_, _ = fmt.Fprintf(&key, "%p ", k.Schema) // Compiled ones are kept, so that no other has the place of one.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, found := c.published[key.String()]; found {
		return known, nil
	}
	text, err := json.Marshal(openAPI(kinds))
	if err != nil {
		return Document{}, fmt.Errorf("publish a schema: %w", err)
	}
	if c.published == nil {
		c.published = map[string]Document{}
	}
	made := Document{Text: text, Hash: fmt.Sprintf("%X", sha512.Sum512(text))}
	c.published[key.String()] = made
	return made, nil
}

// openAPI is the OpenAPI document of one group and version.
func openAPI(kinds []*Kind) map[string]any {
	schemas := metadataModels()
	for _, k := range kinds {
		switch {
		case k.Schema != nil:
			schemas[modelName(k.GroupVersionKind)] = k.Schema
		case k.Published():
			name := apiextensionsv1.CustomResourceDefinition{}.OpenAPIModelName()
			maps.Copy(schemas, modelsOf(name))
			schemas[name].AddExtension(kindExtension, kindOf(k.GroupVersionKind))
		}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
		"paths":      map[string]any{},
		"components": map[string]any{"schemas": schemas},
	}
}

// publish makes the schema that is published of a custom kind.
func publish(rules *customRules) *spec.Schema {
	published := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if rules.schema != nil {
		published = rules.schema.Unfold().ToKubeOpenAPI()
		published.SetProperty("metadata", *reference())
		addTypeMeta(published)
		embed(published)
	}
	published.AddExtension(kindExtension, kindOf(rules.kind))
	return published
}

func kindOf(kind schema.GroupVersionKind) []any {
	return []any{map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}}
}

// Published reports whether the server publishes the schema of the kind. The real one does so for all; clients know those of the
// built-in kinds, but for definitions, which another library has.
func (k *Kind) Published() bool { return k.Custom() || k.Group == apiextensionsv1.GroupName }

func addTypeMeta(to *spec.Schema) {
	to.SetProperty("apiVersion", *spec.StringProperty())
	to.SetProperty("kind", *spec.StringProperty())
}

// embed adds the metadata of objects within objects.
func embed(within *spec.Schema) {
	if within == nil {
		return
	}
	for name, property := range within.Properties {
		embed(&property)
		within.Properties[name] = property
	}
	if within.Items != nil {
		embed(within.Items.Schema)
	}
	if within.AdditionalProperties != nil {
		embed(within.AdditionalProperties.Schema)
	}
	if embedded, _ := within.Extensions.GetBool("x-kubernetes-embedded-resource"); !embedded {
		return
	}
	addTypeMeta(within)
	within.SetProperty("metadata", *reference())
	for _, required := range []string{"kind", "apiVersion"} {
		if !slices.Contains(within.Required, required) {
			within.Required = append(within.Required, required)
		}
	}
}

func reference() *spec.Schema {
	return spec.RefSchema(schemaPrefix + metav1.ObjectMeta{}.OpenAPIModelName())
}

func modelName(kind schema.GroupVersionKind) string {
	return util.ToRESTFriendlyName(kind.Group + "/" + kind.Version + "." + kind.Kind)
}

// metadataModels are the schemas of an object's metadata.
func metadataModels() map[string]*spec.Schema {
	return modelsOf(metav1.ObjectMeta{}.OpenAPIModelName())
}

// modelsOf are a schema, and those that it refers to.
func modelsOf(of string) map[string]*spec.Schema {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef(schemaPrefix + path)
	})
	found := map[string]*spec.Schema{}
	wanted := []string{of}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		definition, known := definitions[name]
		if _, has := found[name]; has || !known {
			continue
		}
		found[name] = &definition.Schema
		wanted = append(wanted, definition.Dependencies...)
	}
	return found
}
