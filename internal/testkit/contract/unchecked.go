package contract

import (
	"maps"
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
		if text := path + " is not checked here"; !strings.Contains(message, text) || !strings.Contains(message, `allow it with World.AllowUnchecked("`+t.kind+"."+path+`")`) {
			t.w.Errorf("the refusal says\n\t%s\nwant in it\n\t%s", message, text)
		}
	case a.code != http.StatusUnprocessableEntity || !strings.Contains(message, field):
		t.w.Errorf("%s with a bad %s: %d %s", t.kind, path, a.code, a.body)
	}
}

// refusingUnchecked holds the list of checked fields: a bad value in any other one is refused by both servers.
func refusingUnchecked() []behaviour {
	in := "spec.template.spec."
	pods := map[string]any{
		"affinity":                  object{"podAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": []object{{"topologyKey": ""}}}},
		"tolerations":               []object{{"operator": "Some"}},
		"topologySpreadConstraints": []object{{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe"}},
		"hostAliases":               []object{{"ip": "here"}},
		"dnsConfig":                 object{"nameservers": []string{"here"}},
		"readinessGates":            []object{{"conditionType": "a b"}},
		"runtimeClassName":          "A_B",
		"os":                        object{"name": "none"},
		"overhead":                  object{"cpu": "-1"},
		"priorityClassName":         "A_B",
	}
	inContainer := map[string]any{
		"resizePolicy":  []object{{"resourceName": "disk", "restartPolicy": "Maybe"}},
		"volumeDevices": []object{{"name": "none", "devicePath": "/dev/a"}},
	}
	var behaviours []behaviour
	refuse := func(path string, body func(w *world) (target, object)) {
		behaviours = append(behaviours, behaviour{"unchecked: a bad " + path + " is refused", func(w *world) {
			kind, made := body(w)
			kind.unsound(made, path)
		}})
	}
	for _, field := range slices.Sorted(maps.Keys(pods)) {
		refuse(in+field, func(w *world) (target, object) {
			return w.deployments(), w.deployments().new("a", workload(), object{in + field: pods[field]})
		})
	}
	for _, field := range slices.Sorted(maps.Keys(inContainer)) {
		refuse(in+"containers."+field, func(w *world) (target, object) {
			return w.statefulSets(), w.statefulSets().new("a", workload(), containerWith(object{field: inContainer[field]}))
		})
	}
	refuse(in+"volumes.csi", func(w *world) (target, object) {
		return w.deployments(), w.deployments().new("a", workload(), object{in + "volumes": []object{{"name": "a", "csi": object{}}}})
	})
	refuse("spec.externalIPs", func(w *world) (target, object) {
		return w.services(), w.service(object{"spec.externalIPs": []string{"here"}})
	})
	refuse("spec.trafficDistribution", func(w *world) (target, object) {
		return w.services(), w.service(object{"spec.trafficDistribution": "Far"})
	})
	refuse("spec.dataSource", func(w *world) (target, object) {
		return w.claims(), w.claim().with("spec.dataSource", object{"kind": "PersistentVolumeClaim", "name": ""})
	})
	refuse("spec", func(w *world) (target, object) {
		volumes := w.in("v1", "persistentvolumes", "PersistentVolume")
		return volumes, volumes.new(w.namespace, object{"spec.capacity": object{"cpu": "1"}})
	})
	refuse("value", func(w *world) (target, object) {
		classes := w.in("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass")
		return classes, classes.new(w.namespace, object{"value": 2000000000})
	})
	return append(behaviours, acceptingChecked()...)
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
				"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local", "spec.internalTrafficPolicy": "Local", "spec.publishNotReadyAddresses": true,
				"spec.ports": []object{{"name": "web", "port": 80, "targetPort": "web", "appProtocol": "http"}},
			})).is(http.StatusCreated)
			w.claims().post(w.claim().with("spec.selector", object{"matchLabels": object{"a": "b"}}).with("spec.volumeMode", "Block")).is(http.StatusCreated)
		}},
	}
}
