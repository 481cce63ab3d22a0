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
func (w *world) ingresses() target { return w.in("networking.k8s.io/v1", "ingresses", "Ingress") }
func (w *world) storageClasses() target {
	return w.in("storage.k8s.io/v1", "storageclasses", "StorageClass")
}

func badFields() []badField {
	service := func(part object) []object { return []object{{"spec.ports": []object{{"port": 80}}}, part} }
	deployment := func(part object) []object { return []object{workload(), part} }
	one := func(part object) []object { return []object{part} }
	env := func(source object) []object {
		return deployment(containerWith(object{"env": []object{{"name": "A", "valueFrom": source}}}))
	}
	from := func(source object) []object { return deployment(containerWith(object{"envFrom": []object{source}})) }
	seccomp := func(profile string) []object {
		return deployment(containerWith(object{"securityContext": object{"seccompProfile": object{"type": "Localhost", "localhostProfile": profile}}}))
	}
	return []badField{
		{"an unknown externalTrafficPolicy of a Service", (*world).services, service(object{"spec.type": "NodePort", "spec.externalTrafficPolicy": "Far"}), "spec.externalTrafficPolicy: Unsupported value"},
		{"an externalTrafficPolicy of a Service inside of the cluster", (*world).services, service(object{"spec.externalTrafficPolicy": "Local"}), "spec.externalTrafficPolicy: Invalid value"},
		{"allocateLoadBalancerNodePorts without a load balancer", (*world).services, service(object{"spec.allocateLoadBalancerNodePorts": true}), "spec.allocateLoadBalancerNodePorts: Forbidden"},
		{"a healthCheckNodePort without a load balancer", (*world).services, service(object{"spec.healthCheckNodePort": 30000}), "spec.healthCheckNodePort: Invalid value"},
		{"an address family that is named twice", (*world).services, service(object{"spec.ipFamilies": []string{"IPv4", "IPv4"}}), "spec.ipFamilies[1]: Duplicate value"},
		{"a maxUnavailable of 101%", (*world).deployments, deployment(object{"spec.strategy": object{"rollingUpdate": object{"maxUnavailable": "101%"}}}), "maxUnavailable: Invalid value"},
		{"a minAvailable of 101%", (*world).budgets, one(object{"spec.minAvailable": "101%"}), "spec.minAvailable: Invalid value"},
		{"a bad name of a Secret for a variable", (*world).deployments, env(object{"secretKeyRef": object{"name": "A_B", "key": "k"}}), "secretKeyRef.name: Invalid value"},
		{"a bad name of a ConfigMap for a variable", (*world).deployments, env(object{"configMapKeyRef": object{"name": "A_B", "key": "k"}}), "configMapKeyRef.name: Invalid value"},
		{"a bad name of a Secret for all variables", (*world).deployments, from(object{"secretRef": object{"name": "A_B"}}), "secretRef.name: Invalid value"},
		{"a bad name of a ConfigMap for all variables", (*world).deployments, from(object{"configMapRef": object{"name": "A_B"}}), "configMapRef.name: Invalid value"},
		{"a field of another version of pods", (*world).deployments, env(object{"fieldRef": object{"fieldPath": "metadata.name", "apiVersion": "v2"}}), "unsupported pod version: v2"},
		{"an absolute seccomp profile", (*world).deployments, seccomp("/a"), "localhostProfile: Invalid value"},
		{"a seccomp profile outside of its directory", (*world).deployments, seccomp("a/../b"), "localhostProfile: Invalid value"},
		{"too many parallel pods with an index", (*world).jobs, one(object{"spec": work().with("completionMode", "Indexed").with("completions", 2).with("parallelism", 100001)}), "spec.parallelism: Invalid value"},
		{"a selector of a Job that has none of its own", (*world).jobs, one(object{"spec": work().with("selector", object{"matchLabels": object{"app": "a"}}).with("template.metadata.labels", object{"app": "a"})}), "`selector` not auto-generated"},
		{"a label of a Job that the server sets", (*world).jobs, one(object{"spec": work().with("template.metadata.labels", object{"job-name": "b"})}), "must be 'a'"},
		{"an empty TLS host of an Ingress", (*world).ingresses, one(object{"spec.rules": []object{{"host": "example.org"}}, "spec.tls": []object{{"hosts": []string{""}}}}), "spec.tls[0].hosts[0]: Invalid value"},
		{"a parameter of a StorageClass without a name", (*world).storageClasses, one(object{"provisioner": "example.org/a", "parameters": object{"": "a"}}), "parameters: Invalid value"},
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
		{"checked: a Service keeps no fields of a type that it had before", func(w *world) {
			made := w.services().post(w.service(object{"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"})).is(http.StatusCreated)
			if made.at("spec.healthCheckNodePort") == nil {
				w.Error("it has no port for health checks")
			}
			changed := w.services().merge("a", object{"spec": object{"type": "ClusterIP"}}).ok()
			for _, field := range []string{"externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"} {
				w.want(changed, "spec."+field, nil)
			}
		}},
		{"checked: the template of a suspended Job changes in part", func(w *world) {
			w.jobs().create("a", object{"spec": work()})
			in := func(spec object) object { return object{"spec": object{"template": object{"spec": spec}}} }
			w.jobs().merge("a", in(object{"nodeSelector": object{"a": "b"}})).ok()
			w.jobs().merge("a", in(object{"restartPolicy": "OnFailure"})).refused(http.StatusUnprocessableEntity, "Invalid", "spec.template", "field is immutable")
		}},
		{"checked: the deadline of a pod does not become longer", func(w *world) {
			w.pods().post(w.pod(object{"spec.activeDeadlineSeconds": 50})).is(http.StatusCreated)
			w.pods().merge("a", object{"spec": object{"activeDeadlineSeconds": 40}}).ok()
			for value, text := range map[any]string{60: "must be less than or equal to previous value", nil: "must not update from a positive integer to nil value"} {
				w.pods().merge("a", object{"spec": object{"activeDeadlineSeconds": value}}).refused(http.StatusUnprocessableEntity, "Invalid", text)
			}
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
