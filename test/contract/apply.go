package contract

import "net/http"

func applying() []behaviour {
	return []behaviour{
		{"apply: creates an object that is missing", func(w *world) {
			made := w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).is(http.StatusCreated)
			w.want(made, "spec.size", 3)
			entry := w.managed(made, "one", "")
			w.want(entry, "operation", "Apply")
			w.want(entry, "fieldsV1", object{"f:spec": object{"f:size": object{}}})
		}},
		{"apply: changes only what it names", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3, "spec.short": "abc"})
			changed := w.widgets().apply("one", w.widgets().new("a", object{"spec.color": "red"})).is(http.StatusOK)
			w.want(changed, "spec.size", 3)
			w.want(changed, "spec.short", "abc")
			w.want(changed, "spec.color", "red")
		}},
		{"apply: a field that is not applied any more goes", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.short": "abc", "spec.color": "red"})).ok()
			changed := w.widgets().apply("one", w.widgets().new("a", object{"spec.color": "red"})).ok()
			w.want(changed, "spec.short", nil)
			w.want(changed, "spec.color", "red")
		}},
		{"apply: a field that another manager applied too stays", func(w *world) {
			body := w.widgets().new("a", object{"spec.color": "red"})
			w.widgets().apply("one", body).ok()
			w.widgets().apply("two", body).ok()
			changed := w.widgets().apply("one", w.widgets().new("a")).ok()
			w.want(changed, "spec.color", "red")
		}},
		{"apply: what changes nothing keeps the resourceVersion", func(w *world) {
			body := w.widgets().new("a", object{"spec.size": 3})
			made := w.widgets().apply("one", body).ok()
			w.want(w.widgets().apply("one", body).ok(), "metadata.resourceVersion", made.version())
		}},
		{"apply: merges lists by key", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.parts": []object{{"name": "x", "value": "1"}}})).ok()
			changed := w.widgets().apply("two", w.widgets().new("a", object{"spec.parts": []object{{"name": "y", "value": "2"}}})).ok()
			w.want(changed, "spec.parts", []object{{"name": "x", "value": "1"}, {"name": "y", "value": "2"}})
		}},
		{"apply: merges sets and replaces plain lists", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.tags": []string{"x"}})).ok()
			changed := w.widgets().apply("two", w.widgets().new("a", object{"spec.tags": []string{"y"}, "spec.lines": []string{"l"}})).ok()
			w.want(changed, "spec.tags", []string{"x", "y"})
			w.want(w.widgets().apply("two", w.widgets().new("a", object{"spec.lines": []string{"m"}})).ok(), "spec.lines", []string{"m"})
			w.want(w.widgets().get("a"), "spec.tags", []string{"x"})
		}},
	}
}

func applyingMore() []behaviour {
	return []behaviour{
		{"apply: without a field manager is 422", func(w *world) {
			w.widgets().patch(applyType, "a", w.widgets().new("a")).refused(http.StatusUnprocessableEntity, "Invalid",
				"fieldManager: Required value: is required for apply patch")
		}},
		{"apply: managedFields in the body are 400", func(w *world) {
			w.widgets().create("a")
			w.widgets().apply("one", w.widgets().new("a", object{"metadata.managedFields": []object{}})).refused(http.StatusBadRequest, "BadRequest",
				"metadata.managedFields must be nil")
		}},
		{"apply: an unknown field is refused", func(w *world) {
			refused := w.widgets().apply("one", w.widgets().new("a", object{"spec.bogus": 1})).is(http.StatusInternalServerError)
			w.want(refused, "message", "failed to create typed patch object (/a; contract.einmal.dev/v1, Kind=Widget): .spec.bogus: field not declared in schema")
		}},
		{"apply: a uid makes sure that the object exists", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"metadata.uid": "gone"})).refused(http.StatusConflict, "Conflict",
				"uid mismatch: the provided object specified uid gone, and no existing object was found")
		}},
		{"apply: a resource version creates an object that is missing", func(w *world) {
			made := w.widgets().apply("one", w.widgets().new("a", object{"metadata.resourceVersion": "1", "spec.size": 3})).is(http.StatusCreated)
			w.want(made, "spec.size", 3)
			w.want(w.widgets().get("a"), "metadata.resourceVersion", made.version())
		}},
		{"apply: a resource version changes no other object", func(w *world) {
			w.widgets().create("a")
			w.widgets().apply("one", w.widgets().new("a", object{"metadata.resourceVersion": "1", "spec.size": 2})).refused(
				http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again")
			w.want(w.widgets().get("a"), "spec.size", nil)
		}},
		{"apply: the uid of another object is refused", func(w *world) {
			w.widgets().create("a")
			w.widgets().apply("one", w.widgets().new("a", object{"metadata.uid": "other", "spec.size": 2})).refused(
				http.StatusUnprocessableEntity, "Invalid", `metadata.uid: Invalid value: "other": field is immutable`)
		}},
		{"apply: the right uid is fine", func(w *world) {
			made := w.widgets().create("a")
			changed := w.widgets().apply("one", w.widgets().new("a", object{"metadata.uid": made.uid(), "spec.size": 2})).ok()
			w.want(changed, "spec.size", 2)
		}},
		{"apply: an old resourceVersion is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().merge("a", object{"spec": object{"size": 4}}).ok()
			w.widgets().apply("one", w.widgets().new("a", object{"metadata.resourceVersion": made.version(), "spec.color": "red"})).
				refused(http.StatusConflict, "Conflict", modified)
		}},
	}
}

func applyingElsewhere() []behaviour {
	return []behaviour{
		{"apply: to a built-in kind", func(w *world) {
			made := w.configMaps().apply("one", w.configMaps().new("a", object{"data": object{"a": "1"}})).is(http.StatusCreated)
			w.want(w.managed(made, "one", ""), "fieldsV1", object{"f:data": object{"f:a": object{}}})
			changed := w.configMaps().apply("two", w.configMaps().new("a", object{"data": object{"b": "2"}})).ok()
			w.want(changed, "data", object{"a": "1", "b": "2"})
		}},
		{"apply: owner references are merged by uid", func(w *world) {
			owner := w.widgets().create("owner")
			reference := object{"apiVersion": group + "/v1", "kind": "Widget", "name": "owner", "uid": owner.uid()}
			body := w.configMaps().new("a", object{"metadata.ownerReferences": []object{reference}, "data": object{"a": "1"}})
			w.configMaps().apply("one", body).ok()
			again := w.configMaps().apply("one", body).ok()
			w.want(again, "metadata.ownerReferences", []object{reference})
		}},
		{"apply: the status through its subresource", func(w *world) {
			w.widgets().create("a")
			body := w.widgets().new("a", object{"status.phase": "ready"})
			changed := w.widgets().patch(applyType, "a/status", body, "fieldManager", "one").ok()
			w.want(changed, "status.phase", "ready")
			w.want(w.managed(changed, "one", "status"), "operation", "Apply")
		}},
		{"apply: a status subresource of a missing object is 404", func(w *world) {
			w.widgets().patch(applyType, "a/status", w.widgets().new("a"), "fieldManager", "one").refused(http.StatusNotFound, "NotFound")
		}},
	}
}

func applyingConflicts() []behaviour {
	return []behaviour{
		{"apply: a field of another manager is 409 with causes", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).ok()
			refused := w.widgets().apply("two", w.widgets().new("a", object{"spec.size": 4})).refused(http.StatusConflict, "Conflict",
				`Apply failed with 1 conflict: conflict with "one": .spec.size`)
			w.want(refused, "details.causes", []object{
				{"reason": "FieldManagerConflict", "message": `conflict with "one"`, "field": ".spec.size"},
			})
			w.want(w.widgets().get("a"), "spec.size", 3)
		}},
		{"apply: the same value is no conflict", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).ok()
			w.widgets().apply("two", w.widgets().new("a", object{"spec.size": 3})).ok()
		}},
		{"apply: a field that was updated by another manager is 409", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).ok()
			w.widgets().patch(mergeType, "a", object{"spec": object{"size": 4}}, "fieldManager", "editor").ok()
			w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).refused(http.StatusConflict, "Conflict",
				`conflict with "editor"`)
		}},
		{"apply: force takes the field over", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.size": 3})).ok()
			changed := w.widgets().apply("two", w.widgets().new("a", object{"spec.size": 4}), "force", "true").ok()
			w.want(changed, "spec.size", 4)
			w.want(w.managed(changed, "two", ""), "fieldsV1", object{"f:spec": object{"f:size": object{}}})
		}},
	}
}

func managing() []behaviour {
	return []behaviour{
		{"managed fields: an update notes the manager and what it changed", func(w *world) {
			made := w.widgets().post(w.widgets().new("a", object{"spec.size": 3}), "fieldManager", "maker").ok()
			entry := w.managed(made, "maker", "")
			w.want(entry, "operation", "Update")
			w.want(entry, "apiVersion", group+"/v1")
			w.want(entry, "fieldsType", "FieldsV1")
			w.want(entry, "fieldsV1", object{"f:spec": object{".": object{}, "f:size": object{}}})
			changed := w.widgets().patch(mergeType, "a", object{"spec": object{"color": "red"}}, "fieldManager", "painter").ok()
			w.want(w.managed(changed, "painter", ""), "fieldsV1", object{"f:spec": object{"f:color": object{}}})
		}},
		{"managed fields: without a manager it is the user agent", func(w *world) {
			c := call{
				method: http.MethodPost, path: w.widgets().collection(), agent: "tester/v1 (linux)",
				body: w.widgets().new("a", object{"spec.size": 3}),
			}
			w.managed(w.send(c).ok(), "tester", "")
		}},
		{"managed fields: an update that takes a field over takes it from the other", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.size": 3}), "fieldManager", "maker").ok()
			changed := w.widgets().patch(mergeType, "a", object{"spec": object{"size": 4}}, "fieldManager", "other").ok()
			w.want(w.managed(changed, "other", ""), "fieldsV1", object{"f:spec": object{"f:size": object{}}})
			w.want(w.managed(changed, "maker", ""), "fieldsV1", object{"f:spec": object{}})
		}},
		{"managed fields: a built-in kind", func(w *world) {
			made := w.configMaps().post(w.configMaps().new("a", object{"data": object{"a": "1"}}), "fieldManager", "maker").ok()
			w.want(w.managed(made, "maker", ""), "fieldsV1", object{"f:data": object{".": object{}, "f:a": object{}}})
		}},
		{"managed fields: an empty list resets them", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			changed := w.widgets().patch(mergeType, "a", object{"metadata": object{"managedFields": []object{{}}}}).ok()
			w.want(changed, "metadata.managedFields", nil)
		}},
	}
}
