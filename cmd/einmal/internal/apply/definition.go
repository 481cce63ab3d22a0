package apply

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

const (
	definitionGroup = "apiextensions.k8s.io"
	definitionKind  = "CustomResourceDefinition"

	definitionPoll    = 50 * time.Millisecond
	definitionTimeout = 60 * time.Second
)

func isDefinition(object manifest.Object) bool {
	kind := object.GroupVersionKind()
	return kind.Group == definitionGroup && kind.Kind == definitionKind
}

// awaitDefinitions waits until the API server serves the kinds of the definitions.
func (a *Applier) awaitDefinitions(ctx context.Context, definitions []manifest.Object) error {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	for _, definition := range definitions {
		var state string
		err := wait.PollUntilContextCancel(ctx, definitionPoll, true, func(ctx context.Context) (done bool, err error) {
			done, state, err = a.established(ctx, definition)
			return done, err
		})
		if err != nil {
			return fmt.Errorf("%s: wait until %s is established (%s): %w",
				definition.Origin, definition.Name(), state, err)
		}
	}
	return nil
}

// established reports whether the API server serves the kind of a definition. If not, state describes why.
func (a *Applier) established(ctx context.Context, definition manifest.Object) (done bool, state string, err error) {
	mapping, err := a.mapping(definition.GroupVersionKind())
	if err != nil {
		return false, "", err
	}
	live, err := a.client.Resource(mapping.Resource).Get(ctx, definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	if accepted, why := condition(live, "NamesAccepted"); !accepted {
		return false, why, nil
	}
	if established, why := condition(live, "Established"); !established {
		return false, why, nil
	}
	for _, kind := range servedVersions(live) {
		if !a.served(ctx, kind) {
			return false, "established, but not served yet", nil
		}
	}
	return true, "", nil
}

// servedVersions returns the versions of a definition that have served set to true.
func servedVersions(definition *unstructured.Unstructured) []schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	all, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var served []schema.GroupVersionKind
	for _, one := range all {
		if v, ok := one.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			served = append(served, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return served
}

// published reports whether the OpenAPI schema of a kind is published.
func (a *Applier) published(kind schema.GroupVersionKind) bool {
	paths, err := a.discovery.OpenAPIV3().Paths()
	if err != nil || paths["apis/"+kind.GroupVersion().String()] == nil {
		return false
	}
	text, err := paths["apis/"+kind.GroupVersion().String()].Schema(runtime.ContentTypeJSON)
	return err == nil && bytes.Contains(text, []byte(`"kind":"`+kind.Kind+`"`))
}

// condition reports whether a condition of an object is true, and returns its reason and message.
func condition(object *unstructured.Unstructured, kind string) (isTrue bool, text string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True", fmt.Sprintf("%s: %v %v", kind, c["reason"], c["message"])
		}
	}
	return false, "no condition " + kind + " yet"
}

// served reports whether a kind can be discovered and listed, and its schema read. An API server publishes its kinds in
// several places, which are updated one after the other.
func (a *Applier) served(ctx context.Context, kind schema.GroupVersionKind) bool {
	mapping, err := a.mapping(kind)
	if err != nil {
		return false
	}
	resources, err := a.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	known := func(r metav1.APIResource) bool { return r.Kind == kind.Kind }
	if err != nil || !slices.ContainsFunc(resources.APIResources, known) {
		return false
	}
	_, err = a.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && a.published(kind)
}

// Names returns the resource names of the CustomResourceDefinitions among the objects, for use with kubectl: the first
// short name of each, or its plural.
func Names(objects []manifest.Object) []string {
	var names []string
	for _, object := range manifest.OfKind(objects, definitionGroup, definitionKind) {
		short, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "names", "shortNames")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		switch {
		case len(short) > 0:
			names = append(names, short[0])
		case plural != "":
			names = append(names, plural)
		}
	}
	return names
}
