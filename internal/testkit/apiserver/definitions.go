package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// Definitions are CustomResourceDefinitions that servers start with. They are compiled once, however many servers use
// them, in whatever bubbles.
type Definitions struct {
	objects  []*unstructured.Unstructured
	compiler kind.Compiler
}

// ParseDefinitions reads CustomResourceDefinitions from YAML; each text may hold several.
func ParseDefinitions(manifests ...[]byte) (*Definitions, error) {
	definitions := &Definitions{}
	for _, manifest := range manifests {
		reader := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := reader.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("parse the definitions: %w", err)
			}
			if len(object.Object) > 0 {
				definitions.objects = append(definitions.objects, object)
			}
		}
	}
	return definitions, nil
}

func (d *Definitions) install(s *Server) error {
	definitions := s.kinds.ofResource("customresourcedefinitions.apiextensions.k8s.io")
	for _, object := range d.objects {
		err := s.store.Do(func(tx *store.Tx) error {
			w := &write{server: s, tx: tx, kind: definitions, manager: "testkit"}
			object := object.DeepCopy()
			if object.GroupVersionKind() != definitions.GroupVersionKind {
				return fmt.Errorf("%s is no CustomResourceDefinition", object.GetName())
			}
			if _, err := definitions.Shape(object); err != nil {
				return err
			}
			_, err := w.create(object)
			return err
		})
		if err != nil {
			return fmt.Errorf("define %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// installed serves a definition as it is now.
func (s *Server) installed(tx *store.Tx, object *unstructured.Unstructured) error {
	definition, err := kind.Definition(object)
	if err != nil {
		return err
	}
	group, plural := definition.Spec.Group, definition.Spec.Names.Plural
	kinds, err := s.definitions.compiler.Compile(definition, tx.Revision())
	if err != nil {
		return err
	}
	s.kinds.replace(group, plural, kinds)
	tx.EndWatches(plural + "." + group)
	return nil
}

// uninstalled stops to serve a definition.
func (s *Server) uninstalled(tx *store.Tx, object *unstructured.Unstructured) error {
	definition, err := kind.Definition(object)
	if err != nil {
		return err
	}
	s.kinds.replace(definition.Spec.Group, definition.Spec.Names.Plural, nil)
	tx.EndWatches(definition.Spec.Names.Plural + "." + definition.Spec.Group)
	return nil
}
