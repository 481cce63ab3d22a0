package contract

import (
	"net/http"
	"slices"
	"strings"
)

// aggregated is the form of discovery that has everything in one document.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// groups are the documents of discovery, by group.
func (w *world) groups() map[string]object {
	w.Helper()
	found := map[string]object{}
	for _, path := range []string{"/api", "/apis"} {
		items, _ := w.send(call{method: http.MethodGet, path: path, accept: aggregated}).ok().at("items").([]any)
		for _, item := range items {
			described, _ := item.(map[string]any)
			found[object(described).text("metadata.name")] = described
		}
	}
	return found
}

// described is what discovery tells of a resource in the version that is preferred.
func (w *world) described(group, plural string) object {
	w.Helper()
	resources, _ := w.groups()[group].at("versions.0.resources").([]any)
	for _, resource := range resources {
		if found, _ := resource.(map[string]any); found["resource"] == plural {
			return found
		}
	}
	return nil
}

// versionsOf are the versions of a group, the preferred one first.
func (w *world) versionsOf(group string) (names []string) {
	w.Helper()
	versions, _ := w.groups()[group].at("versions").([]any)
	for _, version := range versions {
		described, _ := version.(map[string]any)
		names = append(names, object(described).text("version"))
	}
	return names
}

// called is what discovery tells of a kind.
type called struct {
	group, plural, kind, singular, scope string
	short, categories                    any
}

func calledKinds() []called {
	return []called{
		{group, "widgets", "Widget", "widget", "Namespaced", []string{"wd"}, []string{"all"}},
		{group, "gadgets", "Gadget", "gadget", "Cluster", nil, nil},
		{"", "pods", "Pod", "pod", "Namespaced", []string{"po"}, []string{"all"}},
		{"", "services", "Service", "service", "Namespaced", []string{"svc"}, []string{"all"}},
		{"", "configmaps", "ConfigMap", "configmap", "Namespaced", []string{"cm"}, nil},
		{"", "secrets", "Secret", "secret", "Namespaced", nil, nil},
		{"", "namespaces", "Namespace", "namespace", "Cluster", []string{"ns"}, nil},
		{"", "events", "Event", "event", "Namespaced", []string{"ev"}, nil},
		{"", "serviceaccounts", "ServiceAccount", "serviceaccount", "Namespaced", []string{"sa"}, nil},
		{"", "persistentvolumeclaims", "PersistentVolumeClaim", "persistentvolumeclaim", "Namespaced", []string{"pvc"}, nil},
		{"events.k8s.io", "events", "Event", "event", "Namespaced", []string{"ev"}, nil},
		{"apps", "deployments", "Deployment", "deployment", "Namespaced", []string{"deploy"}, []string{"all"}},
		{"apps", "statefulsets", "StatefulSet", "statefulset", "Namespaced", []string{"sts"}, []string{"all"}},
		{"coordination.k8s.io", "leases", "Lease", "lease", "Namespaced", nil, nil},
		{"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "customresourcedefinition", "Cluster", []string{"crd", "crds"}, []string{"api-extensions"}},
	}
}

func discoveringNames() []behaviour {
	return []behaviour{
		{"discover: what kinds are called, and their categories", func(w *world) {
			for _, kind := range calledKinds() {
				found := w.described(kind.group, kind.plural)
				w.want(found, "responseKind.kind", kind.kind)
				w.want(found, "singularResource", kind.singular)
				w.want(found, "scope", kind.scope)
				w.want(found, "shortNames", kind.short)
				w.want(found, "categories", kind.categories)
				verbs, _ := found.at("verbs").([]any)
				for _, verb := range []any{"get", "list", "watch", "create", "update", "patch", "delete"} {
					if !slices.Contains(verbs, verb) {
						w.Errorf("%s: the verbs %v are without %s", kind.plural, verbs, verb)
					}
				}
			}
		}},
		{"discover: the preferred version comes first", func(w *world) {
			w.want(object{"versions": w.versionsOf(group)}, "versions", []string{"v1", "v1beta1"})
		}},
		{"discover: versions, categories and short names that a definition gets", func(w *world) {
			definition, _ := w.temporary()
			own, schema := definition.text("spec.group"), properties(object{"size": object{"type": "integer"}})
			w.change(definition.text("metadata.name"), object{"spec": object{
				"names":    object{"categories": []string{"things"}, "shortNames": []string{"tg"}},
				"versions": []object{version("v1", schema), version("v1alpha2", schema), version("v2", schema)},
			}})
			w.eventually("its new names are known", func() bool {
				found := w.described(own, "things")
				return found != nil && slices.Equal(texts(found.at("categories")), []string{"things"}) && slices.Equal(texts(found.at("shortNames")), []string{"tg"})
			})
			w.eventually("its new versions are known", func() bool { return slices.Equal(w.versionsOf(own), []string{"v2", "v1", "v1alpha2"}) })
			w.change(definition.text("metadata.name"), object{"spec": object{"names": object{"categories": nil}}})
			w.eventually("it has left its category", func() bool { return w.described(own, "things").at("categories") == nil })
			w.definitions().delete(definition.text("metadata.name")).ok()
			w.eventually("its group is gone", func() bool { return w.groups()[own] == nil })
		}},
		{"discover: what has not changed is not told again", func(w *world) {
			asked := call{method: http.MethodGet, path: "/apis", accept: aggregated}
			w.eventually("nothing changes between two requests", func() bool {
				first := w.send(asked)
				again := asked
				again.unless = first.header.Get("ETag")
				return again.unless != "" && w.send(again).code == http.StatusNotModified
			})
		}},
		{"serve: another version is stored from now on", func(w *world) {
			definition, _ := w.temporary()
			first := version("v1", properties(object{"size": object{"type": "integer"}})).with("storage", false)
			second := version("v2", properties(object{"size": object{"type": "integer"}})).with("storage", true)
			w.change(definition.text("metadata.name"), object{"spec": object{"versions": []object{first, second}}})
			w.want(w.definitions().get(definition.text("metadata.name")), "status.storedVersions", []string{"v1", "v2"})
		}},
		{"discover: the published schema of definitions", func(w *world) {
			text := string(w.send(call{method: http.MethodGet, path: "/openapi/v3/apis/apiextensions.k8s.io/v1"}).body)
			if !strings.Contains(text, `"kind":"CustomResourceDefinition"`) {
				w.Error("it is not published")
			}
		}},
	}
}

// texts are the items of a list.
func texts(list any) []string {
	items, _ := list.([]any)
	all := make([]string, len(items))
	for i, item := range items {
		all[i], _ = item.(string)
	}
	return all
}
