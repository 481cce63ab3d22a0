package contract

import "net/http"

func mergePatching() []behaviour {
	return []behaviour{
		{"merge patch: sets and removes fields", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3, "spec.short": "abc", "spec.selector": object{"a": "1", "b": "2"}})
			changed := w.widgets().merge("a", object{"spec": object{"size": 4, "short": nil, "selector": object{"a": nil, "c": "3"}}}).ok()
			w.want(changed, "spec.size", 4)
			w.want(changed, "spec.short", nil)
			w.want(changed, "spec.selector", object{"b": "2", "c": "3"})
		}},
		{"merge patch: replaces lists", func(w *world) {
			w.widgets().create("a", object{"spec.lines": []string{"x", "y"}})
			w.want(w.widgets().merge("a", object{"spec": object{"lines": []string{"z"}}}).ok(), "spec.lines", []string{"z"})
		}},
		{"merge patch: a resourceVersion that has passed is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().merge("a", object{"spec": object{"size": 4}}).ok()
			w.widgets().merge("a", object{"metadata": object{"resourceVersion": made.version()}, "spec": object{"size": 5}}).
				refused(http.StatusConflict, "Conflict", modified)
		}},
		{"merge patch: no JSON is 400", func(w *world) {
			w.widgets().create("a")
			w.widgets().patch(mergeType, "a", "{").refused(http.StatusBadRequest, "BadRequest")
		}},
		{"merge patch: a value of the wrong type is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().merge("a", object{"spec": object{"size": "three"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`)
		}},
		{"merge patch: annotations that are not texts are refused", func(w *world) {
			w.widgets().create("a")
			w.widgets().merge("a", object{"metadata": object{"annotations": object{"a": 1}}}).refused(http.StatusUnprocessableEntity, "Invalid", "metadata")
		}},
	}
}

func mergePatchingStatus() []behaviour {
	return []behaviour{
		{"merge patch status: metadata.uid is ignored", func(w *world) {
			w.widgets().create("a")
			changed := w.widgets().merge("a/status", object{"metadata": object{"uid": "other"}, "status": object{"phase": "late"}}).ok()
			w.want(changed, "status.phase", "late")
		}},
		{"merge patch status: a resourceVersion that has passed is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().merge("a", object{"spec": object{"size": 4}}).ok()
			w.widgets().merge("a/status", object{"metadata": object{"resourceVersion": made.version()}, "status": object{"phase": "late"}}).
				refused(http.StatusConflict, "Conflict", modified)
		}},
		{"merge patch status: labels and spec are ignored", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			changed := w.widgets().merge("a/status", object{
				"metadata": object{"labels": object{"a": "b"}}, "spec": object{"size": 4}, "status": object{"phase": "ready"},
			}).ok()
			w.want(changed, "metadata.labels", nil)
			w.want(changed, "spec.size", 3)
			w.want(changed, "status.phase", "ready")
		}},
		{"merge patch status: null removes the status", func(w *world) {
			w.widgets().create("a")
			w.widgets().merge("a/status", object{"status": object{"phase": "ready"}}).ok()
			w.want(w.widgets().merge("a/status", object{"status": nil}).ok(), "status", nil)
		}},
	}
}

func strategic() []behaviour {
	return []behaviour{
		{"strategic patch: merges lists by key in a built-in kind", func(w *world) {
			services := w.in("v1", "services", "Service")
			services.create("a", object{"spec.ports": []object{{"name": "web", "port": 80}}})
			changed := services.patch(strategicType, "a", object{"spec": object{"ports": []object{{"name": "tls", "port": 443}}}}).ok()
			if ports, _ := changed.at("spec.ports").([]any); len(ports) != 2 {
				w.Errorf("the ports are %v", ports)
			}
		}},
		{"strategic patch: is 415 for a custom kind", func(w *world) {
			w.widgets().create("a")
			w.widgets().patch(strategicType, "a", object{}).refused(http.StatusUnsupportedMediaType, "UnsupportedMediaType")
		}},
		{"strategic patch: finalizers are merged", func(w *world) {
			w.configMaps().create("a", object{"metadata.finalizers": []string{"contract.einmal.dev/a"}})
			changed := w.configMaps().patch(strategicType, "a", object{"metadata": object{"finalizers": []string{"contract.einmal.dev/b"}}}).ok()
			if finalizers, _ := changed.at("metadata.finalizers").([]any); len(finalizers) != 2 {
				w.Errorf("the finalizers are %v", finalizers)
			}
			w.configMaps().merge("a", object{"metadata": object{"finalizers": nil}}).ok()
		}},
	}
}
