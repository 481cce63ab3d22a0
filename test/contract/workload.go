package contract

import "net/http"

func (w *world) deployments() target  { return w.in("apps/v1", "deployments", "Deployment") }
func (w *world) statefulSets() target { return w.in("apps/v1", "statefulsets", "StatefulSet") }

// containerWith is the spec of a pod whose container has more fields.
func containerWith(fields object) object {
	one := object{"name": "main", "image": "example.org/app:1"}
	for path, value := range fields {
		one = one.with(path, value)
	}
	return object{"spec.template.spec.containers": []object{one}}
}

// badTemplate is a template that is refused, with what the refusal says.
type badTemplate struct {
	name  string
	spec  object
	texts []string
}

func badTemplates() []badTemplate {
	in := "spec.template.spec."
	return []badTemplate{
		{
			"a mount of an unknown volume", containerWith(object{"volumeMounts": []object{{"name": "data", "mountPath": "/data"}}}),
			[]string{in + `containers[0].volumeMounts[0].name: Not found: "data"`},
		},
		{
			"a mount above its volume", containerWith(object{"volumeMounts": []object{{"name": "data", "mountPath": "/data", "subPath": "../a"}}}),
			[]string{`subPath: Invalid value: "../a": must not contain '..'`},
		},
		{"a bad name of a container", containerWith(object{"name": "Main_1"}), []string{in + `containers[0].name: Invalid value: "Main_1"`}},
		{"a container without an image", containerWith(object{"image": nil}), []string{in + "containers[0].image: Required value"}},
		{
			"two containers of one name",
			object{in + "containers": []object{{"name": "a", "image": "a"}, {"name": "a", "image": "a"}}},
			[]string{in + `containers[1].name: Duplicate value: "a"`},
		},
		{"no container", object{in + "containers": []object{}}, []string{in + "containers: Required value"}},
		{
			"a request over the limit", containerWith(object{"resources": object{"requests": object{"cpu": "2"}, "limits": object{"cpu": "1"}}}),
			[]string{in + `containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		},
		{
			"a negative request", containerWith(object{"resources": object{"requests": object{"memory": "-1"}}}),
			[]string{in + `containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`},
		},
		{"a bad name of a variable", containerWith(object{"env": []object{{"name": "a=b", "value": "c"}}}), []string{in + `containers[0].env[0].name: Invalid value: "a=b"`}},
		{"a variable with a value and a source", containerWith(object{"env": []object{
			{"name": "A", "value": "c", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "k"}}},
		}}), []string{in + "containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"}},
		{"a port of 0", containerWith(object{"ports": []object{{"containerPort": 0}}}), []string{in + "containers[0].ports[0].containerPort: Required value"}},
		{"a port out of range", containerWith(object{"ports": []object{{"containerPort": 70000}}}), []string{in + "containers[0].ports[0].containerPort: Invalid value: 70000"}},
		{"a bad policy of pulling images", containerWith(object{"imagePullPolicy": "Often"}), []string{in + `containers[0].imagePullPolicy: Unsupported value: "Often"`}},
		{"a probe without a handler", containerWith(object{"livenessProbe": object{"periodSeconds": 5}}), []string{in + "containers[0].livenessProbe: Required value: must specify a handler type"}},
		{"a probe of port 0", containerWith(object{"readinessProbe": object{"httpGet": object{"port": 0}}}), []string{in + "containers[0].readinessProbe.httpGet.port: Invalid value: 0"}},
		{"a user below 0", containerWith(object{"securityContext": object{"runAsUser": -1}}), []string{in + "containers[0].securityContext.runAsUser: Invalid value: -1"}},
		{
			"a volume of two sources",
			object{in + "volumes": []object{{"name": "a", "secret": object{"secretName": "a"}, "configMap": object{"name": "a"}}}},
			[]string{in + "volumes[0].configMap: Forbidden: may not specify more than 1 volume type"},
		},
		{"two volumes of one name", object{in + "volumes": []object{{"name": "a"}, {"name": "a"}}}, []string{in + `volumes[1].name: Duplicate value: "a"`}},
		{
			"a volume of no claim",
			object{in + "volumes": []object{{"name": "a", "persistentVolumeClaim": object{}}}},
			[]string{in + "volumes[0].persistentVolumeClaim.claimName: Required value"},
		},
		{"a bad node selector", object{in + "nodeSelector": object{"a": "b c"}}, []string{in + "nodeSelector: Invalid value"}},
		{"a bad DNS policy", object{in + "dnsPolicy": "Some"}, []string{in + `dnsPolicy: Unsupported value: "Some"`}},
		{"a restart policy of Never", object{in + "restartPolicy": "Never"}, []string{in + `restartPolicy: Unsupported value: "Never"`}},
	}
}

func podTemplates() []behaviour {
	var behaviours []behaviour
	for _, c := range badTemplates() {
		behaviours = append(behaviours, behaviour{"template: " + c.name + " is 422", func(w *world) {
			w.deployments().invalid(w.deployments().new("a", workload(), c.spec), c.texts...)
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), object{"spec.serviceName": "a"}, c.spec), c.texts...)
		}})
	}
	return behaviours
}

func workloadSpecs() []behaviour {
	return []behaviour{
		{"apps: fewer replicas than 0 are 422", func(w *world) {
			negative := object{"spec.replicas": -1}
			text := "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
			w.deployments().invalid(w.deployments().new("a", workload(), negative), text)
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), negative), text)
		}},
		{"apps: an empty selector is 422", func(w *world) {
			empty := object{"spec.selector": object{}}
			w.deployments().invalid(w.deployments().new("a", workload(), empty), "empty selector is invalid for deployment")
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), empty), "empty selector is invalid for statefulset")
		}},
		{"apps: no selector is 422", func(w *world) {
			w.deployments().invalid(w.deployments().new("a", workload(), object{"spec.selector": nil}), "spec.selector: Required value")
		}},
		{"apps: labels of a StatefulSet that the selector does not match are 422", func(w *world) {
			other := object{"spec.selector": object{"matchLabels": object{"app": "b"}}}
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), other), "`selector` does not match template `labels`")
		}},
		{"apps: a bad strategy is 422", func(w *world) {
			w.deployments().invalid(w.deployments().new("a", workload(), object{"spec.strategy": object{"type": "Fast"}}), "spec.strategy: Unsupported value")
			none := object{"spec.strategy": object{"rollingUpdate": object{"maxSurge": 0, "maxUnavailable": 0}}}
			w.deployments().invalid(w.deployments().new("a", workload(), none), "may not be 0 when `maxSurge` is 0")
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), object{"spec.updateStrategy": object{"type": "Fast"}}), "spec.updateStrategy: Invalid value")
			w.statefulSets().invalid(w.statefulSets().new("a", workload(), object{"spec.podManagementPolicy": "Fast"}), "spec.podManagementPolicy: Invalid value")
		}},
		{"apps: a claim template of a StatefulSet is a volume of its pods", func(w *world) {
			mounted := containerWith(object{"volumeMounts": []object{{"name": "data", "mountPath": "/data"}}})
			claim := object{"metadata": object{"name": "data"}, "spec": w.claim()["spec"]}
			w.statefulSets().create("a", workload(), mounted, object{"spec.serviceName": "a", "spec.volumeClaimTemplates": []object{claim}})
			bad := object{"metadata": object{"name": "data"}, "spec": w.claim().with("spec.accessModes", []string{"Once"})["spec"]}
			w.statefulSets().invalid(w.statefulSets().new("b", workload(), mounted, object{"spec.volumeClaimTemplates": []object{bad}}),
				`spec.volumeClaimTemplates[0].spec.accessModes: Unsupported value: "Once"`)
		}},
		{"apps: a change that makes a workload invalid is 422", func(w *world) {
			w.deployments().create("a", workload())
			w.deployments().merge("a", object{"spec": object{"replicas": -1}}).refused(http.StatusUnprocessableEntity, "Invalid", "spec.replicas: Invalid value")
		}},
		{"core: a bad access mode of a claim is 422", func(w *world) {
			w.claims().invalid(w.claim().with("spec.accessModes", []string{"ReadWriteTwice"}), `spec.accessModes: Unsupported value: "ReadWriteTwice"`)
			w.claims().invalid(w.claim().with("spec.accessModes", []string{"ReadWriteOncePod", "ReadWriteMany"}), "may not use ReadWriteOncePod with other access modes")
		}},
		{"core: a claim of a negative size or a bad mode is 422", func(w *world) {
			w.claims().invalid(w.claim().with("spec.resources", object{"requests": object{"storage": "-1"}}), "spec.resources[storage]: Invalid value")
			w.claims().invalid(w.claim().with("spec.volumeMode", "Disk"), `spec.volumeMode: Unsupported value: "Disk"`)
		}},
	}
}
