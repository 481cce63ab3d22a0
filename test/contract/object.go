package contract

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is an object as JSON.
type object map[string]any

// at returns what is at a path like "metadata.name" or "spec.items.0", nil if nothing is.
func (o object) at(path string) any {
	var value any = map[string]any(o)
	for element := range strings.SplitSeq(path, ".") {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[element]
		case object:
			value = parent[element]
		case []any:
			index, err := strconv.Atoi(element)
			if err != nil || index >= len(parent) {
				return nil
			}
			value = parent[index]
		default:
			return nil
		}
	}
	return value
}

func (o object) text(path string) string {
	text, _ := o.at(path).(string)
	return text
}

func (o object) uid() string     { return o.text("metadata.uid") }
func (o object) version() string { return o.text("metadata.resourceVersion") }

// with copies the object with a value at a path; nil removes it.
func (o object) with(path string, value any) object {
	head, rest, nested := strings.Cut(path, ".")
	changed := maps.Clone(o)
	if changed == nil {
		changed = object{}
	}
	switch {
	case nested:
		child := object{}
		switch existing := changed[head].(type) {
		case map[string]any:
			child = existing
		case object:
			child = existing
		}
		changed[head] = map[string]any(child.with(rest, value))
	case value == nil:
		delete(changed, head)
	default:
		changed[head] = value
	}
	return changed
}

// want checks what is at a path.
func (w *world) want(o object, path string, want any) {
	w.Helper()
	if got := o.at(path); !cmp.Equal(plain(got), plain(want)) {
		w.Errorf("%s is %#v, want %#v", path, got, want)
	}
}

// plain makes Go values comparable with those read from JSON.
func plain(value any) any {
	text, err := utiljson.Marshal(value)
	if err != nil {
		return value
	}
	var read any
	if err := utiljson.Unmarshal(text, &read); err != nil {
		return value
	}
	return read
}

// target is a resource, in the namespace of the world if it has namespaces.
type target struct {
	w                     *world
	version, plural, kind string
	cluster               bool
	// accept is the form that a watch asks for.
	accept string
}

func (w *world) in(version, plural, kind string) target {
	cluster := slices.Contains([]string{
		"namespaces", "gadgets", "customresourcedefinitions", "nodes", "persistentvolumes", "storageclasses", "priorityclasses",
		"clusterroles", "clusterrolebindings",
	}, plural)
	return target{w: w, version: version, plural: plural, kind: kind, cluster: cluster}
}

const group = "contract.einmal.dev"

func (w *world) widgets() target    { return w.in(group+"/v1", "widgets", "Widget") }
func (w *world) gadgets() target    { return w.in(group+"/v1", "gadgets", "Gadget") }
func (w *world) configMaps() target { return w.in("v1", "configmaps", "ConfigMap") }
func (w *world) definitions() target {
	return w.in("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition")
}

func (t target) collection() string {
	path := "/apis/" + t.version
	if t.version == "v1" {
		path = "/api/v1"
	}
	if !t.cluster {
		path += "/namespaces/" + t.w.namespace
	}
	return path + "/" + t.plural
}

func (t target) path(name string) string { return t.collection() + "/" + name }

// new is an object of the kind that can be created.
func (t target) new(name string, parts ...object) object {
	made := object{"apiVersion": t.version, "kind": t.kind, "metadata": map[string]any{"name": name}}
	for _, part := range parts {
		for path, value := range part {
			made = made.with(path, value)
		}
	}
	return made
}

func (t target) post(body any, pairs ...string) answer {
	t.w.Helper()
	return t.w.send(call{method: http.MethodPost, path: t.collection(), body: body, query: query(pairs...)})
}

// create makes an object; the parts are values by path.
func (t target) create(name string, parts ...object) object {
	t.w.Helper()
	return t.post(t.new(name, parts...)).is(http.StatusCreated)
}

func (t target) read(name string) answer {
	t.w.Helper()
	return t.w.send(call{method: http.MethodGet, path: t.path(name)})
}

func (t target) get(name string) object {
	t.w.Helper()
	return t.read(name).ok()
}

func (t target) list(pairs ...string) object {
	t.w.Helper()
	return t.w.send(call{method: http.MethodGet, path: t.collection(), query: query(pairs...)}).ok()
}

func (t target) put(body object) answer {
	t.w.Helper()
	return t.w.send(call{method: http.MethodPut, path: t.path(body.text("metadata.name")), body: body})
}

func (t target) putStatus(body object) answer {
	t.w.Helper()
	return t.w.send(call{method: http.MethodPut, path: t.path(body.text("metadata.name")) + "/status", body: body})
}

// patch sends a patch; the name may end with "/status".
func (t target) patch(kind, name string, body any, pairs ...string) answer {
	t.w.Helper()
	return t.w.send(call{method: http.MethodPatch, path: t.path(name), contentType: kind, body: body, query: query(pairs...)})
}

// op is one operation of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (t target) json(name string, operations ...op) answer {
	t.w.Helper()
	return t.patch(jsonType, name, operations)
}

func (t target) merge(name string, body object) answer {
	t.w.Helper()
	return t.patch(mergeType, name, body)
}

// apply is server-side apply by a manager.
func (t target) apply(manager string, body object, pairs ...string) answer {
	t.w.Helper()
	name := body.text("metadata.name")
	return t.patch(applyType, name, body, append([]string{"fieldManager", manager}, pairs...)...)
}

func (t target) delete(name string, options ...object) answer {
	t.w.Helper()
	c := call{method: http.MethodDelete, path: t.path(name)}
	if len(options) > 0 {
		c.body = options[0]
	}
	return t.w.send(c)
}

// gone reports whether there is no such object.
func (t target) gone(name string) bool {
	t.w.Helper()
	return t.read(name).code == http.StatusNotFound
}
