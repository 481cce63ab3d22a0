package contract

import "net/http"

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func updating() []behaviour {
	return []behaviour{
		{"put: a change of the spec raises generation and resourceVersion", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			changed := w.widgets().put(made.with("spec.size", 4)).is(http.StatusOK)
			w.want(changed, "metadata.generation", 2)
			if changed.version() == made.version() {
				w.Error("the resourceVersion is the same")
			}
		}},
		{"put: a change of the metadata does not raise the generation", func(w *world) {
			made := w.widgets().create("a")
			changed := w.widgets().put(made.with("metadata.labels", object{"a": "b"})).ok()
			w.want(changed, "metadata.generation", 1)
			w.want(changed, "metadata.labels.a", "b")
		}},
		{"put: what changes nothing keeps the resourceVersion", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			w.want(w.widgets().put(made).ok(), "metadata.resourceVersion", made.version())
		}},
		{"put: an old resourceVersion is 409", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			w.widgets().put(made.with("spec.size", 4)).ok()
			w.widgets().put(made.with("spec.size", 5)).refused(http.StatusConflict, "Conflict",
				`Operation cannot be fulfilled on widgets.contract.einmal.dev "a": `+modified)
		}},
		{"put: a custom object without a resourceVersion is 422", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().put(made.with("metadata.resourceVersion", nil)).refused(http.StatusUnprocessableEntity, "Invalid",
				"metadata.resourceVersion: Invalid value: 0: must be specified for an update")
		}},
		{"put: another uid is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().put(made.with("metadata.uid", "other")).refused(http.StatusConflict, "Conflict",
				"Precondition failed: UID in precondition: other, UID in object meta: "+made.uid())
		}},
		{"put: a missing object is 404", func(w *world) {
			w.widgets().put(w.widgets().new("a", object{"metadata.resourceVersion": "1"})).refused(http.StatusNotFound, "NotFound")
		}},
		{"put: drops annotations and finalizers that are not in the body", func(w *world) {
			made := w.widgets().create("a", object{
				"metadata.annotations": object{"a": "b"}, "metadata.finalizers": []string{"contract.einmal.dev/hold"},
			})
			bare := w.widgets().new("a", object{"metadata.resourceVersion": made.version(), "spec.size": 9})
			changed := w.widgets().put(bare).ok()
			w.want(changed, "metadata.annotations", nil)
			w.want(changed, "metadata.finalizers", nil)
			w.want(changed, "metadata.uid", made.uid())
			w.want(changed, "metadata.creationTimestamp", made.text("metadata.creationTimestamp"))
		}},
		{"put: another name than in the path is 400", func(w *world) {
			made := w.widgets().create("a")
			w.send(call{method: http.MethodPut, path: w.widgets().path("b"), body: made}).refused(http.StatusBadRequest, "BadRequest",
				"the name of the object (a) does not match the name on the URL (b)")
		}},
	}
}

func replacingStatus() []behaviour {
	return []behaviour{
		{"put: the status is ignored in a write of the object", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().putStatus(made.with("status.phase", "ready")).ok()
			changed := w.widgets().put(w.widgets().get("a").with("status.phase", "changed").with("spec.size", 5)).ok()
			w.want(changed, "status.phase", "ready")
			w.want(changed, "spec.size", 5)
		}},
		{"put: a write without the status keeps the status", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().putStatus(made.with("status.phase", "ready")).ok()
			changed := w.widgets().put(w.widgets().get("a").with("status", nil)).ok()
			w.want(changed, "status.phase", "ready")
		}},
		{"put status: everything but the status is ignored", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3, "metadata.labels": object{"a": "b"}})
			changed := w.widgets().putStatus(made.with("status.phase", "ready").with("spec.size", 9).
				with("metadata.labels", object{"a": "c"}).with("metadata.finalizers", []string{"contract.einmal.dev/hold"})).ok()
			w.want(changed, "status.phase", "ready")
			w.want(changed, "spec.size", 3)
			w.want(changed, "metadata.labels.a", "b")
			w.want(changed, "metadata.finalizers", nil)
			w.want(changed, "metadata.generation", 1)
		}},
		{"put status: an old resourceVersion is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().putStatus(made.with("status.phase", "ready")).ok()
			w.widgets().putStatus(made.with("status.phase", "late")).refused(http.StatusConflict, "Conflict", modified)
		}},
		{"put status: without a status subresource is 404", func(w *world) {
			made := w.gadgets().create(w.namespace)
			w.gadgets().putStatus(made).is(http.StatusNotFound)
			w.gadgets().delete(w.namespace).ok()
		}},
		{"put: the whole object is written where the status is no subresource", func(w *world) {
			made := w.gadgets().create(w.namespace, object{"status.phase": "one"})
			changed := w.gadgets().put(made.with("status.phase", "two")).ok()
			w.want(changed, "status.phase", "two")
			w.want(changed, "metadata.generation", 2)
			w.gadgets().delete(w.namespace).ok()
		}},
	}
}

func replacingCore() []behaviour {
	return []behaviour{
		{"put: a ConfigMap without a resourceVersion is replaced", func(w *world) {
			w.configMaps().create("a", object{"data": object{"a": "1"}})
			changed := w.configMaps().put(w.configMaps().new("a", object{"data": object{"b": "2"}})).ok()
			w.want(changed, "data", object{"b": "2"})
		}},
		{"put: a ConfigMap has no generation", func(w *world) {
			w.want(w.configMaps().create("a", object{"data": object{"a": "1"}}), "metadata.generation", nil)
		}},
		{"put: a Service that is missing is created", func(w *world) {
			services := w.in("v1", "services", "Service")
			services.put(services.new("a", object{"spec.ports": []object{{"port": 80}}})).is(http.StatusCreated)
		}},
	}
}
