package contract

import (
	"net/http"
	"strings"
)

// temporary is the definition of a kind that one test has for itself.
func (w *world) temporary() (definition object, things target) {
	w.Helper()
	own := strings.ReplaceAll(w.namespace, "-", "") + ".einmal.dev"
	manifest := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + own + `}
spec:
  group: ` + own + `
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
`
	definition = w.define(manifest)
	w.Cleanup(func() {
		w.T.Helper()
	})
	return definition, w.in(own+"/v1", "things", "Thing")
}

// change replaces a definition by one with these values.
func (w *world) change(name string, body object) {
	w.Helper()
	w.definitions().merge(name, body).ok()
}

// placeOf is where the schemas of a group and version are published, with a hash of them; "" for nowhere.
func (w *world) placeOf(version string) string {
	w.Helper()
	published, _ := w.send(call{method: http.MethodGet, path: "/openapi/v3"}).ok().at("paths").(map[string]any)
	described, _ := published["apis/"+version].(map[string]any)
	place, _ := described["serverRelativeURL"].(string)
	return place
}

func properties(spec object) object {
	return object{"type": "object", "properties": object{"spec": object{"type": "object", "properties": spec}}}
}

func version(name string, schema object) object {
	return object{"name": name, "served": true, "storage": name == "v1", "schema": object{"openAPIV3Schema": schema}}
}

func serving() []behaviour {
	return []behaviour{
		{"serve: a kind from its definition on, until its definition goes", func(w *world) {
			definition, things := w.temporary()
			things.create("a", object{"spec.size": 3})
			name := definition.text("metadata.name")
			w.definitions().delete(name).ok()
			w.eventually("the definition is gone", func() bool { return w.definitions().gone(name) })
			w.eventually("the kind is not served", func() bool {
				return w.send(call{method: http.MethodGet, path: things.collection()}).code == http.StatusNotFound
			})
			things.read("a").is(http.StatusNotFound)
		}},
		{"serve: a definition waits for the finalizers of its objects", func(w *world) {
			definition, things := w.temporary()
			things.create("a", object{"metadata.finalizers": []string{hold}})
			name := definition.text("metadata.name")
			w.definitions().delete(name).ok()
			w.eventually("the object is being deleted", func() bool { return things.get("a").text("metadata.deletionTimestamp") != "" })
			w.definitions().get(name)
			things.json("a", op{"remove", "/metadata/finalizers", nil}).ok()
			w.eventually("the definition is gone", func() bool { return w.definitions().gone(name) })
		}},
		{"serve: a new default shows in old objects, whose resourceVersion stays", func(w *world) {
			definition, things := w.temporary()
			made := things.create("a", object{"spec.size": 3})
			schema := properties(object{"size": object{"type": "integer"}, "color": object{"type": "string", "default": "red"}})
			w.change(definition.text("metadata.name"), object{"spec": object{"versions": []object{version("v1", schema)}}})
			w.eventually("the default shows", func() bool { return things.get("a").at("spec.color") == "red" })
			w.want(things.get("a"), "metadata.resourceVersion", made.version())
		}},
		{"serve: a field that is not in the schema any more is not shown", func(w *world) {
			definition, things := w.temporary()
			things.create("a", object{"spec.size": 3})
			schema := properties(object{"color": object{"type": "string"}})
			w.change(definition.text("metadata.name"), object{"spec": object{"versions": []object{version("v1", schema)}}})
			w.eventually("the field does not show", func() bool { return things.get("a").at("spec.size") == nil })
		}},
		{"serve: a version that comes later, and one that goes", func(w *world) {
			definition, things := w.temporary()
			made := things.create("a", object{"spec.size": 3})
			schema, name := properties(object{"size": object{"type": "integer"}}), definition.text("metadata.name")
			two := w.in(strings.Replace(things.version, "/v1", "/v2", 1), "things", "Thing")
			two.read("a").is(http.StatusNotFound)
			w.change(name, object{"spec": object{"versions": []object{version("v1", schema), version("v2", schema)}}})
			w.eventually("the new version is served", func() bool { return !two.gone("a") })
			w.want(two.get("a"), "metadata.uid", made.uid())
			w.want(two.get("a"), "apiVersion", two.version)
			old := version("v1", schema).with("served", false)
			w.change(name, object{"spec": object{"versions": []object{old, version("v2", schema)}}})
			w.eventually("the old version is not served", func() bool { return things.gone("a") })
			two.get("a")
		}},
	}
}

func servingMore() []behaviour {
	return []behaviour{
		{"serve: a watch ends when the schema changes", func(w *world) {
			definition, things := w.temporary()
			s := things.watch()
			things.create("a")
			s.want("ADDED", "a")
			schema := properties(object{"color": object{"type": "string"}})
			w.change(definition.text("metadata.name"), object{"spec": object{"versions": []object{version("v1", schema)}}})
			s.ends()
		}},
		{"serve: where a schema is published changes with it, and is as it was when the schema is", func(w *world) {
			definition, things := w.temporary()
			name, was := definition.text("metadata.name"), ""
			w.eventually("the schema is published", func() bool {
				was = w.placeOf(things.version)
				return was != ""
			})
			schema := properties(object{"size": object{"type": "integer", "default": 1}})
			w.change(name, object{"spec": object{"versions": []object{version("v1", schema)}}})
			w.eventually("it is elsewhere", func() bool { return w.placeOf(things.version) != was })
			old := properties(object{"size": object{"type": "integer"}})
			w.change(name, object{"spec": object{"versions": []object{version("v1", old)}}})
			w.eventually("it is where it was", func() bool { return w.placeOf(things.version) == was })
		}},
		{"serve: the status of a definition names what is served", func(w *world) {
			w.want(w.definitions().get("widgets."+group), "status.acceptedNames.plural", "widgets")
			w.want(w.definitions().get("widgets."+group), "status.storedVersions", []string{"v1"})
		}},
	}
}

// refusingDefinitions tests which definitions are refused.
func refusingDefinitions() []behaviour {
	post := func(w *world, name string, spec object) answer {
		w.Helper()
		return w.definitions().post(w.definitions().new(name, object{
			"spec.group": "bad.einmal.dev", "spec.scope": "Namespaced",
			"spec.names":    object{"kind": "Bad", "plural": "bads"},
			"spec.versions": []object{version("v1", spec)},
		}))
	}
	const sound = "bads.bad.einmal.dev"
	return []behaviour{
		{"serve: a definition with a bad schema is 422", func(w *world) {
			post(w, sound, object{"type": "object", "properties": object{"spec": object{}}}).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields")
		}},
		{"serve: a definition with a bad rule is 422", func(w *world) {
			size := object{"type": "integer", "x-kubernetes-validations": []object{{"rule": "self.nonsense"}}}
			post(w, sound, properties(object{"size": size})).refused(http.StatusUnprocessableEntity, "Invalid", "compilation failed")
		}},
		{"serve: a definition with a rule that can cost too much is 422", func(w *world) {
			names := object{
				"type": "array", "items": object{"type": "string"},
				"x-kubernetes-validations": []object{{"rule": "self.all(a, self.all(b, a == b))"}},
			}
			post(w, sound, properties(object{"names": names})).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].rule: Forbidden: "+
					"estimated rule cost exceeds budget by factor of more than 100x")
		}},
		{"serve: a definition with a default that its schema refuses is 422", func(w *world) {
			size := object{"type": "integer", "default": 1, "minimum": 2}
			post(w, sound, properties(object{"size": size})).refused(http.StatusUnprocessableEntity, "Invalid",
				"properties[spec].properties[size].default: Invalid value: 1:  in body should be greater than or equal to 2")
		}},
		{"serve: a definition of the wrong name is 422", func(w *world) {
			post(w, "other.bad.einmal.dev", properties(object{})).refused(http.StatusUnprocessableEntity, "Invalid", "metadata.name: Invalid value")
		}},
	}
}

func discovering() []behaviour {
	return []behaviour{
		{"discover: the resources of a group and version", func(w *world) {
			list := w.send(call{method: http.MethodGet, path: "/apis/" + group + "/v1"}).ok()
			w.want(list, "kind", "APIResourceList")
			w.want(list, "groupVersion", group+"/v1")
			found := map[string]object{}
			resources, _ := list.at("resources").([]any)
			for _, resource := range resources {
				described, _ := resource.(map[string]any)
				found[object(described).text("name")] = described
			}
			w.want(found["widgets"], "kind", "Widget")
			w.want(found["widgets"], "namespaced", true)
			w.want(found["widgets"], "shortNames", []string{"wd"})
			w.want(found["gadgets"], "namespaced", false)
			w.want(found["widgets/status"], "verbs", []string{"get", "patch", "update"})
			w.want(found["gadgets/status"], "verbs", nil)
		}},
		{"discover: an unknown group and version is 404", func(w *world) {
			w.send(call{method: http.MethodGet, path: "/apis/unknown.einmal.dev/v1"}).is(http.StatusNotFound)
			w.send(call{method: http.MethodGet, path: "/apis/unknown.einmal.dev/v1/things"}).is(http.StatusNotFound)
		}},
		{"discover: all groups, in one document", func(w *world) {
			accept := aggregated + ",application/json"
			w.want(w.send(call{method: http.MethodGet, path: "/api", accept: accept}).ok(), "kind", "APIGroupDiscoveryList")
			all := w.send(call{method: http.MethodGet, path: "/apis", accept: accept})
			w.want(all.ok(), "kind", "APIGroupDiscoveryList")
			if !strings.Contains(string(all.body), `"resource":"widgets"`) {
				w.Error("the widgets are missing")
			}
		}},
		{"discover: the published schema of a custom kind", func(w *world) {
			paths := w.send(call{method: http.MethodGet, path: "/openapi/v3"}).ok()
			published, _ := paths.at("paths").(map[string]any)
			if described, _ := published["apis/"+group+"/v1"].(map[string]any); described["serverRelativeURL"] == nil {
				w.Fatalf("the group is not published in %v", published)
			}
			document := w.send(call{method: http.MethodGet, path: "/openapi/v3/apis/" + group + "/v1"}).ok()
			schemas, _ := document.at("components.schemas").(map[string]any)
			widget, _ := schemas["dev.einmal.contract.v1.Widget"].(map[string]any)
			w.want(widget, "x-kubernetes-group-version-kind", []object{{"group": group, "version": "v1", "kind": "Widget"}})
			w.want(widget, "properties.status.properties.records.additionalProperties.type", "string")
			w.want(widget, "properties.spec.properties.size.default", 1)
		}},
		{"discover: the version of the server", func(w *world) {
			w.want(w.send(call{method: http.MethodGet, path: "/version"}).ok(), "major", "1")
		}},
	}
}

func refusing() []behaviour {
	return []behaviour{
		{"refuse: a method that is not served is 405", func(w *world) {
			w.send(call{method: http.MethodPost, path: w.configMaps().path("a"), body: object{}}).refused(http.StatusMethodNotAllowed, "MethodNotAllowed",
				"the server does not allow this method on the requested resource")
		}},
		{"refuse: a body that is no JSON is 400", func(w *world) {
			w.send(call{method: http.MethodPost, path: w.widgets().collection(), body: "{"}).refused(http.StatusBadRequest, "BadRequest")
			w.send(call{method: http.MethodPost, path: w.configMaps().collection(), body: "{"}).refused(http.StatusBadRequest, "BadRequest")
		}},
		{"refuse: a body of an unknown type is 415", func(w *world) {
			c := call{method: http.MethodPost, path: w.widgets().collection(), body: "x", contentType: "text/plain"}
			w.send(c).refused(http.StatusUnsupportedMediaType, "UnsupportedMediaType")
		}},
		{"refuse: an object of another kind is 400", func(w *world) {
			w.configMaps().post(w.in("v1", "secrets", "Secret").new("a")).is(http.StatusBadRequest)
			w.widgets().post(w.widgets().new("a").with("apiVersion", "other.dev/v1")).is(http.StatusBadRequest)
		}},
		{"refuse: a value of the wrong type in a built-in kind is 400", func(w *world) {
			w.configMaps().post(w.configMaps().new("a", object{"data": object{"a": 1}})).refused(http.StatusBadRequest, "BadRequest",
				`ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`)
		}},
		{"refuse: a body that is too long is 413", func(w *world) {
			body := w.configMaps().new("a", object{"data": object{"a": strings.Repeat("x", 3<<20)}})
			w.configMaps().post(body).refused(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
		}},
		{"refuse: a resource that is not served is 404", func(w *world) {
			w.send(call{method: http.MethodGet, path: "/api/v1/namespaces/" + w.namespace + "/nonsense"}).is(http.StatusNotFound)
			w.send(call{method: http.MethodGet, path: w.widgets().path("a") + "/nonsense"}).is(http.StatusNotFound)
		}},
	}
}
