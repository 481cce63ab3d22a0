package contract

import "net/http"

// badField is a value that both servers refuse in a field that counts as checked.
type badField struct {
	name string
	kind func(*world) target
	// parts are applied in order, as a path can be below another one.
	parts []object
	text  string
}

func (w *world) budgets() target {
	return w.in("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
}

func (w *world) storageClasses() target {
	return w.in("storage.k8s.io/v1", "storageclasses", "StorageClass")
}

func badFields() []badField {
	deployment := func(part object) []object { return []object{workload(), part} }
	one := func(part object) []object { return []object{part} }
	env := func(source object) []object {
		return deployment(containerWith(object{"env": []object{{"name": "A", "valueFrom": source}}}))
	}
	from := func(source object) []object { return deployment(containerWith(object{"envFrom": []object{source}})) }
	return []badField{
		{"a maxUnavailable of 101%", (*world).deployments, deployment(object{"spec.strategy": object{"rollingUpdate": object{"maxUnavailable": "101%"}}}), "maxUnavailable: Invalid value"},
		{"a minAvailable of 101%", (*world).budgets, one(object{"spec.minAvailable": "101%"}), "spec.minAvailable: Invalid value"},
		{"a bad name of a Secret for a variable", (*world).deployments, env(object{"secretKeyRef": object{"name": "A_B", "key": "k"}}), "secretKeyRef.name: Invalid value"},
		{"a bad name of a ConfigMap for a variable", (*world).deployments, env(object{"configMapKeyRef": object{"name": "A_B", "key": "k"}}), "configMapKeyRef.name: Invalid value"},
		{"a bad name of a Secret for all variables", (*world).deployments, from(object{"secretRef": object{"name": "A_B"}}), "secretRef.name: Invalid value"},
		{"a bad name of a ConfigMap for all variables", (*world).deployments, from(object{"configMapRef": object{"name": "A_B"}}), "configMapRef.name: Invalid value"},
		{"a selector of a Job that has none of its own", (*world).jobs, one(object{"spec": work().with("selector", object{"matchLabels": object{"app": "a"}}).with("template.metadata.labels", object{"app": "a"})}), "`selector` not auto-generated"},
		{"a label of a Job that the server sets", (*world).jobs, one(object{"spec": work().with("template.metadata.labels", object{"job-name": "b"})}), "must be 'a'"},
	}
}

func refusingBadFields() []behaviour {
	var behaviours []behaviour
	for _, bad := range badFields() {
		behaviours = append(behaviours, behaviour{"checked: " + bad.name + " is 422", func(w *world) {
			kind := bad.kind(w)
			kind.invalid(kind.new("a", bad.parts...), bad.text)
		}})
	}
	return behaviours
}

func acceptingOddFields() []behaviour {
	return []behaviour{
		{"checked: an empty targetPort of a Service is its port", func(w *world) {
			made := w.services().create("a", object{"spec.ports": []object{{"port": 80, "targetPort": ""}}})
			w.want(made, "spec.ports.0.targetPort", 80)
		}},
		{"checked: a hook of a container gets the defaults of a probe", func(w *world) {
			hook := containerWith(object{"lifecycle": object{"postStart": object{"httpGet": object{"port": 80}}}})
			made := w.deployments().create("a", workload(), hook)
			w.want(made, "spec.template.spec.containers.0.lifecycle.postStart.httpGet", object{"port": 80, "path": "/", "scheme": "HTTP"})
		}},
		{"checked: the image of a pod changes but does not go", func(w *world) {
			w.pods().post(w.pod()).is(http.StatusCreated)
			image := func(value string) answer {
				return w.pods().json("a", op{"replace", "/spec/containers/0/image", value})
			}
			image("example.org/app:2").ok()
			image("").refused(http.StatusUnprocessableEntity, "Invalid", "spec.containers[0].image: Required value")
		}},
		{"checked: a PUT of a PodDisruptionBudget names the version", func(w *world) {
			w.budgets().create("a", object{"spec.minAvailable": 1})
			w.budgets().put(w.budgets().new("a", object{"spec.minAvailable": 2})).refused(
				http.StatusUnprocessableEntity, "Invalid", "metadata.resourceVersion: Invalid value", "must be specified for an update")
		}},
	}
}
