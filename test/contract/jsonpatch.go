package contract

import "net/http"

func jsonPatching() []behaviour {
	return []behaviour{
		{"json patch: add, replace and remove", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3, "spec.short": "abc"})
			changed := w.widgets().json("a", op{"replace", "/spec/size", 4}, op{"remove", "/spec/short", nil},
				op{"add", "/metadata/labels", object{"a": "b"}}).is(http.StatusOK)
			w.want(changed, "spec.size", 4)
			w.want(changed, "spec.short", nil)
			w.want(changed, "metadata.labels.a", "b")
			w.want(changed, "metadata.generation", 2)
		}},
		{"json patch: add to an absent parent is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"add", "/metadata/annotations/a", "b"}).refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: remove of an absent field is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"remove", "/spec/short", nil}).refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: what changes nothing keeps the resourceVersion", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			w.want(w.widgets().json("a", op{"add", "/spec/size", 3}).ok(), "metadata.resourceVersion", made.version())
		}},
		{"json patch: an escaped key", func(w *world) {
			w.widgets().create("a", object{"metadata.annotations": object{"x": "y"}})
			changed := w.widgets().json("a", op{"add", "/metadata/annotations/a.b~1c", "d"},
				op{"add", "/spec", object{"selector": object{"x": "y"}}}, op{"add", "/spec/selector/e~0~1f", "g"}).ok()
			if found, _ := changed.at("metadata.annotations").(map[string]any); found["a.b/c"] != "d" {
				w.Errorf("the annotations are %v", found)
			}
			w.want(changed, "spec.selector.e~/f", "g")
		}},
		{"json patch: a missing object is 404", func(w *world) {
			w.widgets().json("a", op{"add", "/spec/size", 3}).refused(http.StatusNotFound, "NotFound", `"a" not found`)
		}},
		{"json patch: no JSON is 400", func(w *world) {
			w.widgets().create("a")
			w.widgets().patch(jsonType, "a", "{").refused(http.StatusBadRequest, "BadRequest")
			w.widgets().patch(jsonType, "a", `{"a": 1}`).refused(http.StatusBadRequest, "BadRequest")
		}},
		{"json patch: an unknown type of patch is 415", func(w *world) {
			w.widgets().create("a")
			w.widgets().patch("application/nonsense", "a", "[]").refused(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
				"accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
		}},
		{"json patch: an old resourceVersion in the patch is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().json("a", op{"add", "/spec", object{"size": 5}}).ok()
			w.widgets().json("a", op{"add", "/metadata/resourceVersion", made.version()}, op{"add", "/spec/size", 6}).
				refused(http.StatusConflict, "Conflict", modified)
		}},
		{"json patch: a changed name is 400", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"add", "/metadata/name", "b"}).refused(http.StatusBadRequest, "BadRequest")
		}},
		{"json patch: a changed uid is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"add", "/metadata/uid", "b"}).refused(http.StatusUnprocessableEntity, "Invalid",
				`metadata.uid: Invalid value: "b": field is immutable`)
		}},
	}
}

// awkward is text that encoders like to change.
const awkward = `{"a":"<&> ü 日本 \" \\ / \u2028 🚀","b":[1,null,{}]}`

func jsonPatchingTests() []behaviour {
	return []behaviour{
		{"json patch: a failed test is 422", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			w.widgets().json("a", op{"test", "/spec/size", 4}, op{"add", "/spec/size", 5}).refused(http.StatusUnprocessableEntity, "Invalid",
				"the server rejected our request due to an error in our request")
			w.want(w.widgets().get("a"), "spec.size", 3)
		}},
		{"json patch: a test of the uid", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().json("a", op{"test", "/metadata/uid", made.uid()}, op{"add", "/metadata/labels", object{"a": "b"}}).ok()
			w.widgets().json("a", op{"test", "/metadata/uid", "other"}, op{"add", "/metadata/labels", object{"a": "c"}}).
				refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: a test of null passes for an absent field", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"test", "/metadata/annotations", nil}, op{"add", "/metadata/annotations", object{"a": "b"}}).ok()
			w.widgets().json("a", op{"test", "/metadata/annotations", nil}, op{"add", "/metadata/annotations", object{"a": "c"}}).
				refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: a test of null below an absent parent is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a", op{"test", "/metadata/annotations/a", nil}, op{"add", "/metadata/labels", object{"a": "b"}}).
				refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: a test of awkward text", func(w *world) {
			w.widgets().create("a", object{"metadata.annotations": object{"record": awkward}})
			w.widgets().json("a", op{"test", "/metadata/annotations/record", awkward}, op{"add", "/metadata/annotations/record", awkward + " "}).ok()
			w.widgets().json("a", op{"test", "/metadata/annotations/record", awkward}, op{"add", "/spec/size", 7}).
				refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: a test of a number, a list and a map", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3, "spec.lines": []string{"x", "y"}, "spec.selector": object{"k": "v"}})
			w.widgets().json("a", op{"test", "/spec/size", 3}, op{"test", "/spec/lines", []string{"x", "y"}},
				op{"test", "/spec/selector", object{"k": "v"}}, op{"test", "/spec/lines/1", "y"}, op{"add", "/spec/lines/-", "z"}).ok()
			w.want(w.widgets().get("a"), "spec.lines", []string{"x", "y", "z"})
		}},
		{"json patch: a finalizer is added on condition that there is none", func(w *world) {
			w.widgets().create("a")
			add := []op{{"test", "/metadata/finalizers", nil}, {"add", "/metadata/finalizers", []string{"contract.einmal.dev/hold"}}}
			w.want(w.widgets().json("a", add...).ok(), "metadata.finalizers", []string{"contract.einmal.dev/hold"})
			w.widgets().json("a", add...).refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch: a finalizer is removed on condition that it is where it was", func(w *world) {
			const mine, other = "contract.einmal.dev/hold", "contract.einmal.dev/other"
			w.widgets().create("a", object{"metadata.finalizers": []string{other, mine}})
			remove := []op{{"test", "/metadata/finalizers/1", mine}, {"remove", "/metadata/finalizers/1", nil}}
			w.want(w.widgets().json("a", remove...).ok(), "metadata.finalizers", []string{other})
			w.widgets().json("a", remove...).refused(http.StatusUnprocessableEntity, "Invalid")
		}},
	}
}

func jsonPatchingStatus() []behaviour {
	return []behaviour{
		{"json patch status: the whole status is added", func(w *world) {
			made := w.widgets().create("a")
			changed := w.widgets().json("a/status", op{"test", "/metadata/uid", made.uid()}, op{"test", "/status", nil},
				op{"add", "/status", object{"phase": "ready", "records": object{"op": awkward}}}).ok()
			w.want(changed, "status.phase", "ready")
			w.want(changed, "status.records.op", awkward)
			w.want(changed, "metadata.generation", 1)
		}},
		{"json patch status: a test of a record in the status", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a/status", op{"add", "/status", object{"records": object{"op.dev": awkward}}}).ok()
			w.widgets().json("a/status", op{"test", "/status/records/op.dev", awkward}, op{"add", "/status/records/op.dev", "next"}).ok()
			w.widgets().json("a/status", op{"test", "/status/records/op.dev", awkward}, op{"add", "/status/records/op.dev", "late"}).
				refused(http.StatusUnprocessableEntity, "Invalid")
		}},
		{"json patch status: metadata is ignored, managedFields are kept", func(w *world) {
			w.widgets().create("a", object{"metadata.labels": object{"a": "b"}})
			changed := w.widgets().patch(jsonType, "a/status", []op{
				{"add", "/status", object{"phase": "ready"}},
				{"add", "/metadata/labels/a", "c"},
				{"add", "/spec", object{"size": 9}},
				{"add", "/metadata/finalizers", []string{"contract.einmal.dev/hold"}},
				{"add", "/metadata/uid", "other"},
			}, "fieldManager", "writer").ok()
			w.want(changed, "status.phase", "ready")
			w.want(changed, "metadata.labels.a", "b")
			w.want(changed, "metadata.finalizers", nil)
			w.want(changed, "spec.size", nil)
			w.want(w.managed(changed, "writer", "status"), "fieldsV1", object{"f:status": object{".": object{}, "f:phase": object{}, "f:ready": object{}}})
		}},
		{"json patch: the status is ignored in a patch of the object", func(w *world) {
			w.widgets().create("a")
			changed := w.widgets().json("a", op{"add", "/status", object{"phase": "made up"}}, op{"add", "/spec", object{"size": 2}}).ok()
			w.want(changed, "status", nil)
			w.want(changed, "spec.size", 2)
		}},
		{"json patch status: what changes nothing keeps the resourceVersion", func(w *world) {
			w.widgets().create("a")
			one := w.widgets().json("a/status", op{"add", "/status", object{"phase": "ready"}}).ok()
			two := w.widgets().json("a/status", op{"add", "/status/phase", "ready"}).ok()
			w.want(two, "metadata.resourceVersion", one.version())
		}},
		{"json patch status: an invalid status is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().json("a/status", op{"add", "/status", object{"count": -1}}).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: status.count: Invalid value: -1: count in body should be greater than or equal to 0`)
		}},
		{"json patch status: a broken spec does not keep the status from being written", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			w.widgets().json("a/status", op{"add", "/spec/size", 1000}, op{"add", "/status", object{"phase": "ready"}}).ok()
			w.want(w.widgets().get("a"), "spec.size", 3)
		}},
	}
}

// managed is the entry of a manager in an object's managed fields.
func (w *world) managed(of object, manager, subresource string) object {
	w.Helper()
	entries, _ := of.at("metadata.managedFields").([]any)
	for _, entry := range entries {
		described, _ := entry.(map[string]any)
		if found := object(described); found.text("manager") == manager && found.text("subresource") == subresource {
			return found
		}
	}
	w.Errorf("no managed fields of %s in %v", manager, entries)
	return object{}
}
