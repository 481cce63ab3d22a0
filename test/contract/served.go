package contract

import "net/http"

func accessRules() []behaviour {
	const version = "rbac.authorization.k8s.io/v1"
	roles := func(w *world) target { return w.in(version, "roles", "Role") }
	bindings := func(w *world) target { return w.in(version, "rolebindings", "RoleBinding") }
	ref := func(name string) object { return object{"kind": "Role", "name": name} }
	return []behaviour{
		{"rbac: a Role and a RoleBinding are created", func(w *world) {
			rule := object{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get"}}
			roles(w).create("a:b", object{"rules": []object{rule}})
			made := bindings(w).create("a", object{"roleRef": ref("a:b"), "subjects": []object{{"kind": "ServiceAccount", "name": "someone"}}})
			w.want(made, "roleRef.apiGroup", "rbac.authorization.k8s.io")
		}},
		{"rbac: a rule without verbs or resources is 422", func(w *world) {
			roles(w).invalid(roles(w).new("a", object{"rules": []object{{"apiGroups": []string{""}}}}), "rules[0].verbs: Required value", "rules[0].resources: Required value")
		}},
		{"rbac: a bad subject is 422", func(w *world) {
			bindings(w).invalid(bindings(w).new("a", object{"roleRef": ref("a"), "subjects": []object{{"kind": "ServiceAccount", "name": "A_B"}}}), "subjects[0].name: Invalid value")
		}},
		{"rbac: the role of a binding cannot be changed", func(w *world) {
			bindings(w).create("a", object{"roleRef": ref("a")})
			bindings(w).merge("a", object{"roleRef": ref("b")}).refused(http.StatusUnprocessableEntity, "Invalid", "roleRef: Invalid value", "cannot change roleRef")
		}},
	}
}

func clusterObjects() []behaviour {
	return []behaviour{
		{"budget: a PodDisruptionBudget is created", func(w *world) {
			w.budgets().create("a", object{"spec.minAvailable": 1, "spec.selector": object{"matchLabels": object{"app": "a"}}})
		}},
		{"budget: one with both limits or a bad percentage is 422", func(w *world) {
			w.budgets().invalid(w.budgets().new("a", object{"spec.minAvailable": 1, "spec.maxUnavailable": 1}), "minAvailable and maxUnavailable cannot be both set")
			w.budgets().invalid(w.budgets().new("a", object{"spec.minAvailable": "half"}), "spec.minAvailable: Invalid value")
		}},
		{"cluster: a Node is created and deleted", func(w *world) {
			nodes := w.in("v1", "nodes", "Node")
			nodes.create(w.namespace, object{"spec.unschedulable": true})
			nodes.delete(w.namespace).ok()
			nodes.unsound(nodes.new(w.namespace, object{"spec.taints": []object{{"key": "a b", "effect": "Some"}}}), "spec.taints")
		}},
		{"cluster: a StorageClass gets defaults and keeps its provisioner", func(w *world) {
			classes := w.storageClasses()
			made := classes.create(w.namespace, object{"provisioner": "example.org/disk"})
			w.want(made, "reclaimPolicy", "Delete")
			w.want(made, "volumeBindingMode", "Immediate")
			classes.merge(w.namespace, object{"provisioner": "example.org/other"}).refused(
				http.StatusUnprocessableEntity, "Invalid", "provisioner: Invalid value", "field is immutable")
			classes.delete(w.namespace).ok()
			classes.invalid(classes.new(w.namespace), "provisioner: Required value")
		}},
	}
}

func admittingPods() []behaviour {
	return []behaviour{
		{"pod: one whose account is missing is 403", func(w *world) {
			w.pods().post(w.pod(object{"spec.serviceAccountName": "missing"})).refused(http.StatusForbidden, "Forbidden",
				`pods "a" is forbidden: error looking up service account `+w.namespace+`/missing: serviceaccount "missing" not found`)
		}},
		{"pod: gets an account that its creator does not own", func(w *world) {
			made := w.pods().post(w.pod()).is(http.StatusCreated)
			w.want(made, "spec.serviceAccountName", "default")
			w.want(made, "metadata.managedFields.0.fieldsV1.f:spec.f:serviceAccountName", nil)
		}},
		{"pod: a bad one is 422", func(w *world) {
			bad := []object{{"name": "main", "image": "a", "volumeMounts": []object{{"name": "none", "mountPath": "/a"}}}}
			w.pods().invalid(w.pod(object{"spec.containers": bad, "spec.restartPolicy": "Maybe"}),
				`spec.containers[0].volumeMounts[0].name: Not found: "none"`, `spec.restartPolicy: Unsupported value: "Maybe"`)
		}},
		{"pod: its eviction is served or refused loudly", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			evicted := w.send(call{method: http.MethodPost, path: w.pods().path("a/eviction"), body: object{
				"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": "a", "namespace": w.namespace},
			}})
			evicted.servedOr501(http.StatusCreated, "pods/eviction is not served here")
		}},
		{"account: a token is served or refused loudly", func(w *world) {
			w.in("v1", "serviceaccounts", "ServiceAccount").create("a")
			asked := w.send(call{method: http.MethodPost, path: w.in("v1", "serviceaccounts", "ServiceAccount").path("a/token"), body: object{
				"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"audiences": []string{}},
			}})
			asked.servedOr501(http.StatusCreated, "serviceaccounts/token is not served here")
		}},
	}
}

// servedOr501 checks an answer of a server that has a subresource, or the refusal of one that has not.
func (a answer) servedOr501(code int, text string) {
	a.w.Helper()
	if a.code == http.StatusNotImplemented {
		a.refused(http.StatusNotImplemented, "NotServed", text)
		return
	}
	a.is(code)
}

// ownedByUnknown are owners of kinds that are served nowhere, or by a real server only.
func ownedByUnknown() []behaviour {
	absent := func(version, kind string) object {
		return object{"apiVersion": version, "kind": kind, "metadata": object{"name": "absent", "uid": "00000000-0000-0000-0000-000000000000"}}
	}
	return []behaviour{
		{"garbage: what an absent owner of any built-in kind owned goes", func(w *world) {
			for version, kind := range map[string]string{"apps/v1": "DaemonSet", "batch/v1": "Job", "networking.k8s.io/v1": "NetworkPolicy"} {
				w.configMaps().create("child", owned(absent(version, kind)))
				w.eventually("the child of a "+kind+" is gone", func() bool { return w.configMaps().gone("child") })
			}
		}},
		{"garbage: an owner of an unknown kind keeps what it owns", func(w *world) {
			w.configMaps().create("kept", owned(absent("unknown.example/v1", "Unknown")))
			w.configMaps().create("child", owned(absent("v1", "ConfigMap")))
			w.eventually("the other child is gone", func() bool { return w.configMaps().gone("child") })
			w.configMaps().get("kept")
		}},
	}
}
