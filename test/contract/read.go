package contract

import (
	"net/http"
	"strconv"
)

// names lists the names of a list's items.
func (w *world) names(list object) []string {
	w.Helper()
	items, _ := list.at("items").([]any)
	found := []string{}
	for _, item := range items {
		described, _ := item.(map[string]any)
		found = append(found, object(described).text("metadata.name"))
	}
	return found
}

func (w *world) number(version string) int {
	w.Helper()
	number, err := strconv.Atoi(version)
	if err != nil {
		w.Fatalf("the resourceVersion %q: %v", version, err)
	}
	return number
}

func listing() []behaviour {
	return []behaviour{
		{"list: the objects of a namespace by name", func(w *world) {
			for _, name := range []string{"c", "a", "b"} {
				w.widgets().create(name)
			}
			list := w.widgets().list()
			w.want(list, "kind", "WidgetList")
			w.want(list, "apiVersion", group+"/v1")
			w.want(object{"names": w.names(list)}, "names", []string{"a", "b", "c"})
			w.want(list, "items.0.kind", "Widget")
		}},
		{"list: an empty list has items", func(w *world) {
			w.want(w.widgets().list(), "items", []any{})
		}},
		{"list: its resourceVersion is not older than its objects", func(w *world) {
			made := w.widgets().create("a")
			if list := w.widgets().list(); w.number(list.version()) < w.number(made.version()) {
				w.Errorf("the list has %s, the object %s", list.version(), made.version())
			}
		}},
		{"list: resource versions grow with each write, over all kinds", func(w *world) {
			one := w.number(w.widgets().create("a").version())
			two := w.number(w.configMaps().create("a").version())
			three := w.number(w.widgets().merge("a", object{"spec": object{"size": 5}}).ok().version())
			if one >= two || two >= three {
				w.Errorf("the versions are %d, %d, %d", one, two, three)
			}
		}},
		{"list: of all namespaces", func(w *world) {
			w.widgets().create("a", object{"metadata.labels": object{"world": w.namespace}})
			c := call{method: http.MethodGet, path: "/apis/" + group + "/v1/widgets", query: query("labelSelector", "world="+w.namespace)}
			w.want(object{"names": w.names(w.send(c).ok())}, "names", []string{"a"})
		}},
		{"list: a resourceVersion from the future is 504", func(w *world) {
			c := call{method: http.MethodGet, path: w.widgets().collection(), query: query("resourceVersion", "999999999")}
			refused := w.send(c).refused(http.StatusGatewayTimeout, "Timeout", "Too large resource version")
			w.want(refused, "details.causes.0.reason", "ResourceVersionTooLarge")
		}},
		{"list: metadata only", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			c := call{
				method: http.MethodGet, path: w.widgets().collection(),
				accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
			}
			list := w.send(c).ok()
			w.want(list, "kind", "PartialObjectMetadataList")
			w.want(list, "items.0.kind", "PartialObjectMetadata")
			w.want(list, "items.0.spec", nil)
			w.want(list, "items.0.metadata.name", "a")
		}},
		{"get: a missing object is 404 with details", func(w *world) {
			refused := w.configMaps().read("a").refused(http.StatusNotFound, "NotFound", `configmaps "a" not found`)
			w.want(refused, "details", object{"name": "a", "kind": "configmaps"})
			w.want(refused, "status", "Failure")
		}},
	}
}

func selecting() []behaviour {
	selected := func(w *world, pairs ...string) []string {
		w.Helper()
		return w.names(w.widgets().list(pairs...))
	}
	three := func(w *world) {
		w.widgets().create("a", object{"metadata.labels": object{"color": "red", "size": "big"}})
		w.widgets().create("b", object{"metadata.labels": object{"color": "blue"}})
		w.widgets().create("c")
	}
	cases := []struct {
		name, selector, value string
		want                  []string
	}{
		{"a label", "labelSelector", "color=red", []string{"a"}},
		{"not a label", "labelSelector", "color!=red", []string{"b", "c"}},
		{"a set of labels", "labelSelector", "color in (red,blue)", []string{"a", "b"}},
		{"a label that exists", "labelSelector", "color", []string{"a", "b"}},
		{"a label that does not exist", "labelSelector", "!size", []string{"b", "c"}},
		{"a name", "fieldSelector", "metadata.name=b", []string{"b"}},
		{"not a name", "fieldSelector", "metadata.name!=b", []string{"a", "c"}},
	}
	behaviours := make([]behaviour, 0, len(cases)+1)
	for _, c := range cases {
		behaviours = append(behaviours, behaviour{"select: by " + c.name, func(w *world) {
			three(w)
			w.want(object{"names": selected(w, c.selector, c.value)}, "names", c.want)
		}})
	}
	return append(behaviours, behaviour{"select: an unknown field is 400", func(w *world) {
		c := call{method: http.MethodGet, path: w.widgets().collection(), query: query("fieldSelector", "spec.size=3")}
		w.send(c).refused(http.StatusBadRequest, "BadRequest", "field label not supported: spec.size")
	}}, behaviour{"select: by the type of a Secret", func(w *world) {
		secrets := w.in("v1", "secrets", "Secret")
		secrets.create("a", object{"type": "contract.einmal.dev/a"})
		secrets.create("b")
		w.want(object{"names": w.names(secrets.list("fieldSelector", "type=contract.einmal.dev/a"))}, "names", []string{"a"})
	}})
}
