package contract

import "net/http"

func spacesMore() []behaviour {
	spaces := func(w *world) target { return w.in("v1", "namespaces", "Namespace") }
	accounts := func(w *world) target { return w.in("v1", "serviceaccounts", "ServiceAccount") }
	return []behaviour{
		{"namespace: a new one gets the root certificate and the default account", func(w *world) {
			w.eventually("both are there", func() bool {
				return !w.configMaps().gone("kube-root-ca.crt") && !accounts(w).gone("default")
			})
			if certificate := w.configMaps().get("kube-root-ca.crt").at("data").(map[string]any)["ca.crt"]; certificate == nil || certificate == "" {
				w.Error("the certificate is empty")
			}
		}},
		{"namespace: what each one has comes back when it is deleted", func(w *world) {
			w.eventually("the account is there", func() bool { return !accounts(w).gone("default") })
			before := accounts(w).get("default").uid()
			accounts(w).delete("default").ok()
			w.eventually("another account is there", func() bool {
				after := accounts(w).read("default")
				return after.code == http.StatusOK && after.content.uid() != before
			})
		}},
		{"namespace: its deletion takes a while", func(w *world) {
			w.configMaps().create("a")
			spaces(w).delete(w.namespace).ok()
			w.want(spaces(w).delete(w.namespace).ok(), "spec.finalizers", []string{"kubernetes"})
			w.want(spaces(w).get(w.namespace), "status.phase", "Terminating")
			w.configMaps().get("a")
			w.configMaps().merge("a", object{"data": object{"k": "v"}}).ok()
			w.eventually("the object and the namespace are gone", func() bool {
				return w.configMaps().gone("a") && spaces(w).gone(w.namespace)
			})
			w.eventually("the check of new objects has noticed it too", func() bool {
				return w.configMaps().post(w.configMaps().new("b")).code != http.StatusForbidden
			})
			w.configMaps().post(w.configMaps().new("b")).refused(http.StatusNotFound, "NotFound", `namespaces "`+w.namespace+`" not found`)
		}},
		{"namespace: it waits for the finalizers of its objects", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			spaces(w).delete(w.namespace).ok()
			w.eventually("the object is being deleted", func() bool {
				return w.widgets().get("a").text("metadata.deletionTimestamp") != ""
			})
			w.want(spaces(w).get(w.namespace), "status.phase", "Terminating")
			w.widgets().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
			w.eventually("the namespace is gone", func() bool { return spaces(w).gone(w.namespace) })
		}},
	}
}

func (w *world) pods() target { return w.in("v1", "pods", "Pod") }

// pod is a pod named a, on a node that does not exist, so that nothing runs it.
func (w *world) pod(parts ...object) object {
	w.Helper()
	w.eventually("the account of pods is there", func() bool {
		return !w.in("v1", "serviceaccounts", "ServiceAccount").gone("default")
	})
	base := object{"spec.nodeName": "nowhere", "spec.containers": []object{{"name": "main", "image": "example.org/app:1"}}}
	return w.pods().new("a", append([]object{base}, parts...)...)
}

func stopping() []behaviour {
	return []behaviour{
		{"pod: one on a node is given 30 seconds", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			left := w.pods().delete("a").is(http.StatusOK)
			w.want(left, "metadata.deletionGracePeriodSeconds", 30)
			w.want(left, "metadata.generation", 2)
			again := w.pods().delete("a").is(http.StatusOK)
			w.want(again, "metadata.resourceVersion", left.version())
			w.want(w.pods().get("a"), "metadata.deletionTimestamp", left.text("metadata.deletionTimestamp"))
			w.pods().post(w.pod()).refused(http.StatusConflict, "AlreadyExists", "object is being deleted: pods \"a\" already exists")
		}},
		{"pod: one on a node is given the time that it asks for", func(w *world) {
			w.pods().post(w.pod(object{"spec.terminationGracePeriodSeconds": 100})).is(http.StatusCreated)
			w.want(w.pods().delete("a").is(http.StatusOK), "metadata.deletionGracePeriodSeconds", 100)
		}},
		{"pod: the grace can be shortened but not lengthened", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			w.pods().delete("a").ok()
			shorter := w.pods().delete("a", object{"gracePeriodSeconds": 20}).ok()
			w.want(shorter, "metadata.deletionGracePeriodSeconds", 20)
			w.want(w.pods().delete("a", object{"gracePeriodSeconds": 60}).ok(), "metadata.deletionTimestamp", shorter.text("metadata.deletionTimestamp"))
		}},
		{"pod: a grace of 0 removes it", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			w.pods().delete("a").ok()
			w.want(w.pods().delete("a", object{"gracePeriodSeconds": 0}).is(http.StatusOK), "kind", "Pod")
			w.pods().read("a").is(http.StatusNotFound)
		}},
		{"pod: one that is on no node goes at once", func(w *world) {
			w.pods().post(w.pod(object{"spec.nodeName": nil, "spec.schedulerName": "none"})).is(http.StatusCreated)
			w.want(w.pods().delete("a").is(http.StatusOK), "metadata.deletionGracePeriodSeconds", 0)
			w.pods().read("a").is(http.StatusNotFound)
		}},
		{"pod: one that has ended goes at once", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			w.pods().merge("a/status", object{"status": object{"phase": "Succeeded"}}).ok()
			w.pods().delete("a").is(http.StatusOK)
			w.pods().read("a").is(http.StatusNotFound)
		}},
		{"pod: finalizers keep it after its grace", func(w *world) {
			w.pods().post(w.pod(object{"metadata.finalizers": []string{hold}})).is(http.StatusCreated)
			w.pods().delete("a").ok()
			w.pods().delete("a", object{"gracePeriodSeconds": 0}).ok()
			w.want(w.pods().get("a"), "metadata.deletionGracePeriodSeconds", 0)
			w.pods().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
			w.pods().read("a").is(http.StatusNotFound)
		}},
	}
}

func claiming() []behaviour {
	protection := "kubernetes.io/pvc-protection"
	return []behaviour{
		{"claim: a new one has a finalizer that no manager owns", func(w *world) {
			made := w.claims().post(w.claim()).is(http.StatusCreated)
			w.want(made, "metadata.finalizers", []string{protection})
			w.want(made, "metadata.managedFields.0.fieldsV1.f:metadata", nil)
		}},
		{"claim: its deletion ends when the finalizer is taken away", func(w *world) {
			w.claims().post(w.claim()).ok()
			left := w.claims().delete("a").is(http.StatusOK)
			w.want(left, "metadata.finalizers", []string{protection})
			w.eventually("the claim is gone", func() bool { return w.claims().gone("a") })
		}},
		{"claim: one that a pod on a node uses stays", func(w *world) {
			w.claims().post(w.claim()).ok()
			volume := object{"name": "data", "persistentVolumeClaim": object{"claimName": "a"}}
			w.pods().post(w.pod(object{"spec.volumes": []object{volume}})).is(http.StatusCreated)
			w.claims().delete("a").ok()
			w.configMaps().create("other")
			w.claims().get("a")
			w.pods().delete("a", object{"gracePeriodSeconds": 0}).ok()
			w.eventually("the claim is gone", func() bool { return w.claims().gone("a") })
		}},
	}
}
