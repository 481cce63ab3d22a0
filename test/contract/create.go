package contract

import (
	"net/http"
	"strings"
)

func creating() []behaviour {
	return []behaviour{
		{"create: the server sets uid, resourceVersion, creationTimestamp and generation", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			if made.uid() == "" || made.version() == "" || made.text("metadata.creationTimestamp") == "" {
				w.Errorf("the metadata is %v", made.at("metadata"))
			}
			w.want(made, "metadata.generation", 1)
			w.want(made, "metadata.namespace", w.namespace)
			w.want(w.widgets().get("a"), "metadata.uid", made.uid())
		}},
		{"create: what only the server sets is not taken from the client", func(w *world) {
			made := w.widgets().create("a", object{
				"metadata.uid": "mine", "metadata.generation": 7, "metadata.creationTimestamp": "2001-01-01T00:00:00Z",
				"metadata.deletionTimestamp": "2001-01-01T00:00:00Z", "metadata.deletionGracePeriodSeconds": 3,
			})
			if made.uid() == "mine" || strings.HasPrefix(made.text("metadata.creationTimestamp"), "2001") {
				w.Errorf("the metadata is %v", made.at("metadata"))
			}
			w.want(made, "metadata.generation", 1)
			w.want(made, "metadata.deletionTimestamp", nil)
		}},
		{"create: a status is dropped where it is a subresource", func(w *world) {
			made := w.widgets().create("a", object{"status.phase": "made up"})
			w.want(made, "status", nil)
		}},
		{"create: a status is kept where it is no subresource", func(w *world) {
			made := w.gadgets().create(w.namespace, object{"status.phase": "made up"})
			w.want(made, "status.phase", "made up")
			w.gadgets().delete(w.namespace).ok()
		}},
		{"create: a name that is taken is 409 AlreadyExists", func(w *world) {
			w.widgets().create("a")
			w.widgets().post(w.widgets().new("a")).refused(http.StatusConflict, "AlreadyExists",
				`widgets.contract.einmal.dev "a" already exists`)
		}},
		{"create: a name that is taken by an object being deleted says so", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{"contract.einmal.dev/hold"}})
			w.widgets().delete("a").ok()
			w.widgets().post(w.widgets().new("a")).refused(http.StatusConflict, "AlreadyExists",
				`object is being deleted: widgets.contract.einmal.dev "a" already exists`)
			w.widgets().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
		}},
	}
}

func creatingMore() []behaviour {
	return []behaviour{
		{"create: a missing namespace is 404", func(w *world) {
			missing := w.widgets()
			answer := w.send(call{
				method: http.MethodPost, path: strings.Replace(missing.collection(), w.namespace, "missing", 1), body: missing.new("a"),
			})
			refused := answer.refused(http.StatusNotFound, "NotFound", `namespaces "missing" not found`)
			w.want(refused, "details.kind", "namespaces")
		}},
		{"create: a resourceVersion is refused", func(w *world) {
			answer := w.widgets().post(w.widgets().new("a", object{"metadata.resourceVersion": "1"}))
			w.want(answer.is(http.StatusInternalServerError), "message", "resourceVersion should not be set on objects to be created")
		}},
		{"create: another namespace than that of the path is 400", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"metadata.namespace": "default"})).refused(http.StatusBadRequest, "BadRequest",
				"the namespace of the provided object does not match the namespace sent on the request")
		}},
		{"create: a dry run changes nothing", func(w *world) {
			w.widgets().post(w.widgets().new("a"), "dryRun", "All").is(http.StatusCreated)
			w.widgets().read("a").refused(http.StatusNotFound, "NotFound", `widgets.contract.einmal.dev "a" not found`)
		}},
	}
}

func naming() []behaviour {
	return []behaviour{
		{"name: generateName makes a name", func(w *world) {
			body := w.widgets().new("").with("metadata", map[string]any{"generateName": "made-"})
			one, two := w.widgets().post(body).ok().text("metadata.name"), w.widgets().post(body).ok().text("metadata.name")
			if !strings.HasPrefix(one, "made-") || len(one) != len("made-")+5 || one == two {
				w.Errorf("the names are %q and %q", one, two)
			}
		}},
		{"name: an object without a name is 422", func(w *world) {
			w.widgets().post(w.widgets().new("").with("metadata", map[string]any{})).refused(http.StatusUnprocessableEntity, "Invalid",
				"metadata.name: Required value: name or generateName is required")
		}},
		{"name: a bad name is 422 with its cause", func(w *world) {
			refused := w.widgets().post(w.widgets().new("Bad_Name")).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain`)
			w.want(refused, "details.causes.0.field", "metadata.name")
			w.want(refused, "details.causes.0.reason", "FieldValueInvalid")
		}},
		{"name: a bad label is 422", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"metadata.labels": object{"a b": "c"}})).refused(
				http.StatusUnprocessableEntity, "Invalid", `metadata.labels: Invalid value: "a b"`)
		}},
		{"name: a finalizer without a domain is 422 for a built-in kind", func(w *world) {
			w.configMaps().post(w.configMaps().new("a", object{"metadata.finalizers": []string{"hold"}})).refused(
				http.StatusUnprocessableEntity, "Invalid", "metadata.finalizers")
		}},
		{"name: a re-created object has another uid", func(w *world) {
			first := w.widgets().create("a")
			w.widgets().delete("a").ok()
			if second := w.widgets().create("a"); second.uid() == first.uid() {
				w.Errorf("both have the uid %s", first.uid())
			}
		}},
	}
}
