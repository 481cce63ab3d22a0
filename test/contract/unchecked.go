package contract

import (
	"net/http"
	"slices"
	"strings"
)

// reasonNotChecked is how the server in memory refuses a field that it does not check.
const reasonNotChecked = "NotChecked"

// unsound checks that a new object is refused for a field: as invalid, or as not checked by the server in memory.
func (t target) unsound(body object, path string) {
	t.w.Helper()
	a := t.post(body)
	field := path[strings.LastIndex(path, ".")+1:]
	switch message := a.content.text("message"); {
	case a.code == http.StatusNotImplemented && a.content.text("reason") == reasonNotChecked:
		if text := `allow it with World.AllowUnchecked("` + t.kind + "." + path + `")`; !strings.Contains(message, text) {
			t.w.Errorf("the refusal says\n\t%s\nwant in it\n\t%s", message, text)
		}
	case a.code != http.StatusUnprocessableEntity || !strings.Contains(message, field):
		t.w.Errorf("%s with a bad %s: %d %s", t.kind, path, a.code, a.body)
	}
}

// refusingUnchecked holds the list of checked fields: a bad value in any other one is refused by both servers.
func refusingUnchecked() []behaviour {
	var behaviours []behaviour
	for _, bad := range slices.Concat(uncheckedInPods(), uncheckedElsewhere()) {
		behaviours = append(behaviours, behaviour{"unchecked: a bad " + bad.name + " is refused", func(w *world) {
			kind, name := bad.kind(w), "a"
			if kind.cluster {
				name = w.namespace
			}
			kind.unsound(kind.new(name, bad.parts...), bad.text)
		}})
	}
	return append(behaviours, acceptingChecked()...)
}

// uncheckedInPods are fields of the template of a workload. The text is the path of the field.
func uncheckedInPods() []badField {
	const in = "spec.template.spec."
	pod := func(path string, value any) badField {
		return badField{in + path, (*world).deployments, []object{workload(), {in + path: value}}, in + path}
	}
	container := func(path string, value any) badField {
		return badField{in + "containers." + path, (*world).statefulSets, []object{workload(), containerWith(object{path: value})}, in + "containers." + path}
	}
	return []badField{
		pod("activeDeadlineSeconds", 0),
		pod("affinity", object{"podAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": []object{{"topologyKey": ""}}}}),
		pod("tolerations", []object{{"operator": "Some"}}),
		pod("topologySpreadConstraints", []object{{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe"}}),
		pod("hostAliases", []object{{"ip": "here"}}),
		pod("dnsConfig", object{"nameservers": []string{"here"}}),
		pod("readinessGates", []object{{"conditionType": "a b"}}),
		pod("runtimeClassName", "A_B"),
		pod("os", object{"name": "none"}),
		pod("overhead", object{"cpu": "-1"}),
		pod("priorityClassName", "A_B"),
		container("resizePolicy", []object{{"resourceName": "disk", "restartPolicy": "Maybe"}}),
		container("volumeDevices", []object{{"name": "none", "devicePath": "/dev/a"}}),
		container("resources.limits.disk", "1"),
		container("securityContext.seccompProfile.type", "Some"),
		{in + "volumes.csi", (*world).deployments, []object{workload(), {in + "volumes": []object{{"name": "a", "csi": object{}}}}}, in + "volumes.csi"},
	}
}

// uncheckedElsewhere are fields of other kinds, and of other values than those that are checked.
func uncheckedElsewhere() []badField {
	const access = "rbac.authorization.k8s.io/v1"
	in := func(version, plural, kind string) func(*world) target {
		return func(w *world) target { return w.in(version, plural, kind) }
	}
	service := func(path string, value any) badField {
		return badField{path, (*world).services, []object{{"spec.ports": []object{{"port": 80}}, "spec.selector": object{"app": "a"}}, {path: value}}, path}
	}
	job := func(field string, value any) badField {
		return badField{"spec." + field, (*world).jobs, []object{{"spec": work().with(field, value)}}, "spec." + field}
	}
	class := func(field string, value any) badField {
		return badField{field, (*world).storageClasses, []object{{"provisioner": "example.org/disk"}, {field: value}}, field}
	}
	rule := object{"verbs": []string{"get"}, "apiGroups": []string{""}, "resources": []string{"pods"}, "nonResourceURLs": []string{"/a"}}
	return []badField{
		service("spec.externalIPs", []string{"here"}),
		service("spec.trafficDistribution", "Far"),
		service("spec.type", "Local"),
		service("spec.sessionAffinity", "Host"),
		service("spec.ipFamilies", []string{"IPv6"}),
		service("spec.ipFamilyPolicy", "RequireDualStack"),
		service("spec.internalTrafficPolicy", "Far"),
		service("spec.externalTrafficPolicy", "Local"),
		service("spec.healthCheckNodePort", 30000),
		service("spec.allocateLoadBalancerNodePorts", true),
		job("completionMode", "Some"),
		job("podReplacementPolicy", "Some"),
		job("podFailurePolicy", object{"rules": []object{{"action": "Hope"}}}),
		class("parameters", object{"": "a"}),
		class("reclaimPolicy", "Some"),
		{"spec.unhealthyPodEvictionPolicy", (*world).budgets, []object{{"spec.unhealthyPodEvictionPolicy": "Some"}}, "spec.unhealthyPodEvictionPolicy"},
		{"spec.dataSource", (*world).claims, []object{claimed(), {"spec.dataSource": object{"kind": "PersistentVolumeClaim", "name": ""}}}, "spec.dataSource"},
		{"rule of a Role", in(access, "roles", "Role"), []object{{"rules": []object{rule}}}, "rules.nonResourceURLs"},
		{"rule of a ClusterRole", in(access, "clusterroles", "ClusterRole"), []object{{"rules": []object{{"apiGroups": []string{""}}}}}, "rules"},
		{"subject of a RoleBinding", in(access, "rolebindings", "RoleBinding"), []object{{
			"roleRef": object{"kind": "Role", "name": "a"}, "subjects": []object{{"kind": "Robot", "name": "a"}},
		}}, "subjects.kind"},
		{"roleRef of a ClusterRoleBinding", in(access, "clusterrolebindings", "ClusterRoleBinding"), []object{{"roleRef": object{"kind": "Role", "name": "a"}}}, "roleRef"},
		{"spec of an Ingress", in("networking.k8s.io/v1", "ingresses", "Ingress"), []object{{"spec.rules": []object{{"host": "192.0.2.1"}}}}, "spec"},
		{"spec of a NetworkPolicy", in("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"), []object{{"spec.policyTypes": []string{"Sideways"}}}, "spec"},
		{"spec of a PersistentVolume", in("v1", "persistentvolumes", "PersistentVolume"), []object{{"spec.capacity": object{"cpu": "1"}}}, "spec"},
		{"value of a PriorityClass", in("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"), []object{{"value": 2000000000}}, "value"},
	}
}

// acceptingChecked writes the fields that are checked.
func acceptingChecked() []behaviour {
	probe := object{"httpGet": object{"port": "web"}, "initialDelaySeconds": 1, "timeoutSeconds": 1, "periodSeconds": 5, "failureThreshold": 2}
	container := containerWith(object{
		"command": []string{"run"}, "args": []string{"-v"}, "workingDir": "/", "imagePullPolicy": "Always", "stdin": true, "tty": true,
		"ports": []object{{"name": "web", "containerPort": 80, "protocol": "TCP"}},
		"env": []object{
			{"name": "A", "value": "b"},
			{"name": "B", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}},
			{"name": "C", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "k"}}},
		},
		"envFrom":      []object{{"prefix": "P_", "configMapRef": object{"name": "m"}}},
		"resources":    object{"requests": object{"cpu": "1", "memory": "1Gi"}, "limits": object{"memory": "2Gi"}},
		"volumeMounts": []object{{"name": "tmp", "mountPath": "/tmp", "subPath": "a"}, {"name": "config", "mountPath": "/etc/app", "readOnly": true}},
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": 1000, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
			"capabilities": object{"drop": []string{"ALL"}}, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
		"lifecycle": object{"preStop": object{"exec": object{"command": []string{"stop"}}}},
	})
	in := "spec.template.spec."
	pod := object{
		in + "terminationGracePeriodSeconds": 5, in + "dnsPolicy": "Default", in + "nodeSelector": object{"a": "b"}, in + "serviceAccountName": "app",
		in + "automountServiceAccountToken": false, in + "hostname": "a", in + "subdomain": "b", in + "enableServiceLinks": false,
		in + "schedulerName": "none", in + "shareProcessNamespace": true, in + "imagePullSecrets": []object{{"name": "pull"}},
		in + "securityContext": object{"fsGroup": 1000, "runAsGroup": 1000, "supplementalGroups": []int{1}, "fsGroupChangePolicy": "Always"},
		in + "initContainers":  []object{{"name": "first", "image": "a", "restartPolicy": "Always"}},
		in + "volumes": []object{
			{"name": "tmp", "emptyDir": object{"sizeLimit": "1Gi"}},
			{"name": "data", "persistentVolumeClaim": object{"claimName": "a"}},
			{"name": "config", "configMap": object{"name": "m", "items": []object{{"key": "k", "path": "a/b", "mode": 256}}}},
			{"name": "keys", "secret": object{"secretName": "s", "defaultMode": 256, "optional": true}},
		},
	}
	return []behaviour{
		{"unchecked: the checked fields of workloads are accepted", func(w *world) {
			w.deployments().create("a", workload(), container, pod, object{"spec.paused": true, "spec.minReadySeconds": 1, "spec.strategy": object{"type": "Recreate"}})
			w.statefulSets().create("a", workload(), container, pod, object{
				"spec.serviceName": "a", "spec.podManagementPolicy": "Parallel", "spec.updateStrategy": object{"type": "OnDelete"},
				"spec.persistentVolumeClaimRetentionPolicy": object{"whenDeleted": "Delete"},
			})
		}},
		{"unchecked: the checked fields of Services and claims are accepted", func(w *world) {
			w.services().post(w.service(object{
				"spec.type": "LoadBalancer", "spec.publishNotReadyAddresses": true,
				"spec.ports": []object{{"name": "web", "port": 80, "targetPort": "web", "appProtocol": "http"}},
			})).is(http.StatusCreated)
			w.claims().post(w.claim().with("spec.selector", object{"matchLabels": object{"a": "b"}}).with("spec.volumeMode", "Block")).is(http.StatusCreated)
		}},
	}
}
