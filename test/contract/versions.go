package contract

import "net/http"

func versions() []behaviour {
	beta := func(w *world) target { return w.in(group+"/v1beta1", "widgets", "Widget") }
	return []behaviour{
		{"versions: an object shows in each version, with the same uid and resourceVersion", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3, "spec.short": "abc"})
			seen := beta(w).get("a")
			w.want(seen, "apiVersion", group+"/v1beta1")
			w.want(seen, "metadata.uid", made.uid())
			w.want(seen, "metadata.resourceVersion", made.version())
			w.want(seen, "spec", object{"size": 3})
		}},
		{"versions: a patch in an old version loses the fields it does not know", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3, "spec.short": "abc"})
			beta(w).merge("a", object{"spec": object{"size": 4}}).ok()
			w.want(w.widgets().get("a"), "spec", object{"size": 4})
		}},
		{"versions: an object of one version is refused at the path of another", func(w *world) {
			beta(w).post(w.widgets().new("a")).refused(http.StatusBadRequest, "BadRequest",
				"the API version in the data (contract.einmal.dev/v1) does not match the expected API version (contract.einmal.dev/v1beta1)")
		}},
		{"versions: managed fields name the version", func(w *world) {
			made := beta(w).post(beta(w).new("a", object{"spec.size": 3}), "fieldManager", "old").ok()
			w.want(w.managed(made, "old", ""), "apiVersion", group+"/v1beta1")
			w.want(w.managed(w.widgets().get("a"), "old", ""), "apiVersion", group+"/v1beta1")
		}},
		{"versions: a watch tells in its version", func(w *world) {
			s := beta(w).watch()
			w.widgets().create("a", object{"spec.short": "abc"})
			told := s.want("ADDED", "a")
			w.want(told, "apiVersion", group+"/v1beta1")
			w.want(told, "spec", object{"size": 1})
		}},
	}
}

func spaces() []behaviour {
	spaces := func(w *world) target { return w.in("v1", "namespaces", "Namespace") }
	return []behaviour{
		{"namespace: a new one is active and labelled with its name", func(w *world) {
			made := spaces(w).get(w.namespace)
			w.want(made, "status.phase", "Active")
			labels, _ := made.at("metadata.labels").(map[string]any)
			if labels["kubernetes.io/metadata.name"] != w.namespace {
				w.Errorf("the labels are %v", labels)
			}
		}},
		{"namespace: nothing is created in one that is being deleted", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			w.want(spaces(w).delete(w.namespace).ok(), "status.phase", "Terminating")
			refused := w.widgets().post(w.widgets().new("b")).refused(http.StatusForbidden, "Forbidden", "because it is being terminated")
			w.want(refused, "details.causes.0", object{
				"reason": "NamespaceTerminating", "field": "metadata.namespace", "message": "namespace " + w.namespace + " is being terminated",
			})
			w.eventually("its objects are being deleted", func() bool {
				return w.widgets().get("a").text("metadata.deletionTimestamp") != ""
			})
			w.widgets().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
		}},
		{"namespace: it goes when it is empty", func(w *world) {
			w.widgets().create("a")
			w.configMaps().create("b")
			spaces(w).delete(w.namespace).ok()
			w.eventually("the object is gone", func() bool { return w.widgets().gone("a") })
		}},
		{"namespace: a bad name is 422", func(w *world) {
			spaces(w).post(spaces(w).new("a.b")).refused(http.StatusUnprocessableEntity, "Invalid", "must not contain dots")
		}},
		{"namespace: the default one cannot be deleted", func(w *world) {
			spaces(w).delete("default").refused(http.StatusForbidden, "Forbidden", "this namespace may not be deleted")
		}},
	}
}
