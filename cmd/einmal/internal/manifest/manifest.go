// Package manifest reads Kubernetes objects from YAML and JSON files. It records the origin of each object, so that
// messages about the object can name it.
package manifest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Stdin is the Origin.File of objects that were read from standard input.
const Stdin = "standard input"

// Object is an object of a manifest.
type Object struct {
	*unstructured.Unstructured
	Origin Origin
}

// Origin is the location that an object was read from.
type Origin struct {
	// File is the name of the file, or a description such as Stdin.
	File string
	// Document is the number of the document in the file, from 1. Empty documents are not counted.
	Document int
	// Line is the first line of the document, from 1.
	Line int
}

// String returns the file, document and line.
func (o Origin) String() string {
	return fmt.Sprintf("%s, document %d (line %d)", o.File, o.Document, o.Line)
}

// Name returns the kind, namespace and name of the object.
func (o Object) Name() string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

// Load reads the objects of a file, of the YAML and JSON files in a directory, sorted by name, or of stdin if path is
// "-". It returns an error if there are no objects.
func Load(path string, stdin io.Reader) ([]Object, error) {
	files, err := filesOf(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []Object
	for _, file := range files {
		some, err := loadFile(file, stdin)
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s contains no Kubernetes objects", nameOf(path))
	}
	return objects, nil
}

// nameOf returns the name of a file in messages.
func nameOf(file string) string {
	if file == "-" {
		return Stdin
	}
	return file
}

func loadFile(file string, stdin io.Reader) ([]Object, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	data, err := read()
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return Parse(nameOf(file), data)
}

// filesOf returns the manifests in a directory, or the path itself if it is not a directory.
func filesOf(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path) // sorted by name
	var files []string
	for _, entry := range entries {
		if isManifest(entry) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, err
}

// isManifest reports whether a directory entry is a file with Kubernetes objects. A kustomization is not.
func isManifest(entry fs.DirEntry) bool {
	name := entry.Name()
	extension := filepath.Ext(name)
	return !entry.IsDir() && !strings.HasPrefix(name, ".") &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, extension) &&
		strings.TrimSuffix(name, extension) != "kustomization"
}

// Parse reads the objects of a stream of YAML or JSON documents. It replaces lists by their items. Errors refer to the
// stream by name.
func Parse(name string, data []byte) ([]Object, error) {
	var objects []Object
	for _, document := range split(data) {
		origin := Origin{File: name, Document: document.number, Line: document.line}
		some, err := decode(origin, document.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

func decode(origin Origin, text []byte) ([]Object, error) {
	// Unstructured content may contain only the types that UnmarshalJSON produces.
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("parse as YAML: %w", err)
	}
	if slices.Contains([]string{"null", "{}"}, string(asJSON)) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		return nil, fmt.Errorf("not a Kubernetes object, apiVersion and kind are required: %w", err)
	}
	if strings.HasPrefix(object.GetAPIVersion(), "kustomize.config.k8s.io/") {
		return nil, nil
	}
	items := []unstructured.Unstructured{*object}
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return nil, fmt.Errorf("read the items of the list: %w", err)
		}
		items = list.Items
	}
	return validate(origin, items)
}

// validate returns an error if an object lacks a field that server-side apply requires.
func validate(origin Origin, items []unstructured.Unstructured) ([]Object, error) {
	var objects []Object
	for i := range items {
		item := &items[i]
		if item.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s %s has no apiVersion", item.GetKind(), item.GetName())
		}
		if item.GetName() == "" {
			return nil, fmt.Errorf("%s has no metadata.name of type string (server-side apply does not support generateName)", item.GetKind())
		}
		objects = append(objects, Object{Unstructured: item, Origin: origin})
	}
	return objects, nil
}

type document struct {
	text         []byte
	number, line int
}

// split splits a stream at its document markers: lines that consist of "---", alone or followed by white space.
func split(data []byte) []document {
	var documents []document
	var current []byte
	begin, line := 1, 0
	finish := func(next int) {
		if !blank(current) {
			documents = append(documents, document{text: current, number: len(documents) + 1, line: begin})
		}
		current, begin = nil, next
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for text := range bytes.Lines(data) {
		line++
		rest, marked := bytes.CutPrefix(text, []byte("---"))
		if marked && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			finish(line)
			if blank(rest) {
				begin = line + 1
				continue
			}
			text = append([]byte("   "), rest...) // content on the line of the marker
		}
		current = append(current, text...)
	}
	finish(line)
	return documents
}

// blank reports whether a document contains only empty lines and comments.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// Sort sorts objects by their dependencies: namespaces first, then CustomResourceDefinitions, ServiceAccounts, roles and
// role bindings, then all others. The sort is stable.
func Sort(objects []Object) {
	order := []string{
		"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
		"RoleBinding", "Secret", "ConfigMap",
	}
	rank := func(o Object) int {
		if i := slices.Index(order, o.GetKind()); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return rank(a) - rank(b) })
}

// OfKind returns the objects of a kind.
func OfKind(objects []Object, group, kind string) []Object {
	var some []Object
	for _, object := range objects {
		if gvk := object.GroupVersionKind(); gvk.Group == group && gvk.Kind == kind {
			some = append(some, object)
		}
	}
	return some
}
