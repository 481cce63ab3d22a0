package contract

import (
	"net/http"
	"strings"
)

func coreKinds() []behaviour {
	return []behaviour{
		{"core: stringData of a Secret becomes data", func(w *world) {
			secrets := w.in("v1", "secrets", "Secret")
			made := secrets.create("a", object{"stringData": object{"k": "v"}})
			w.want(made, "data", object{"k": "dg=="})
			w.want(made, "stringData", nil)
			w.want(made, "type", "Opaque")
		}},
		{"core: an immutable Secret cannot be changed", func(w *world) {
			secrets := w.in("v1", "secrets", "Secret")
			secrets.create("a", object{"stringData": object{"k": "v"}, "immutable": true})
			secrets.merge("a", object{"stringData": object{"k": "w"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				"data: Forbidden: field is immutable when `immutable` is set")
			secrets.merge("a", object{"metadata": object{"labels": object{"a": "b"}}}).ok()
		}},
		{"core: an immutable ConfigMap cannot be changed", func(w *world) {
			w.configMaps().create("a", object{"data": object{"k": "v"}, "immutable": true})
			w.configMaps().merge("a", object{"data": object{"k": "w"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				"data: Forbidden: field is immutable when `immutable` is set")
		}},
		{"core: the type of a Secret cannot be changed", func(w *world) {
			secrets := w.in("v1", "secrets", "Secret")
			secrets.create("a")
			secrets.merge("a", object{"type": "other"}).refused(http.StatusUnprocessableEntity, "Invalid", "type: Invalid value", "field is immutable")
		}},
		{"core: a ServiceAccount is created and deleted", func(w *world) {
			accounts := w.in("v1", "serviceaccounts", "ServiceAccount")
			accounts.create("a")
			accounts.delete("a").is(http.StatusOK)
			accounts.read("a").is(http.StatusNotFound)
		}},
	}
}

func coreMore() []behaviour {
	return []behaviour{
		{"core: a claim for a volume begins as pending", func(w *world) {
			made := w.claims().post(w.claim()).is(http.StatusCreated)
			w.want(made, "spec.volumeMode", "Filesystem")
			w.want(made, "status.phase", "Pending")
			w.want(made, "spec.resources.requests.storage", "1Gi")
		}},
		{"core: a claim for a volume cannot be changed", func(w *world) {
			w.claims().post(w.claim()).ok()
			w.claims().merge("a", object{"spec": object{"accessModes": []string{"ReadWriteMany"}}}).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")
		}},
		{"core: a claim without a size is 422", func(w *world) {
			w.claims().post(w.claims().new("a", object{"spec.accessModes": []string{"ReadWriteOnce"}})).refused(
				http.StatusUnprocessableEntity, "Invalid", "spec.resources[storage]: Required value")
		}},
		{"core: a Service gets defaults and an address", func(w *world) {
			services := w.in("v1", "services", "Service")
			made := services.create("a", object{"spec.ports": []object{{"port": 80}}, "spec.selector": object{"a": "b"}})
			w.want(made, "spec.type", "ClusterIP")
			w.want(made, "spec.sessionAffinity", "None")
			w.want(made, "spec.ports", []object{{"port": 80, "protocol": "TCP", "targetPort": 80}})
			if made.text("spec.clusterIP") == "" {
				w.Error("it has no address")
			}
		}},
		{"core: the status of a built-in kind through its subresource", func(w *world) {
			w.claims().post(w.claim()).ok()
			changed := w.claims().merge("a/status", object{"status": object{"phase": "Lost"}}).ok()
			w.want(changed, "status.phase", "Lost")
			w.want(w.claims().merge("a", object{"status": object{"phase": "Bound"}}).ok(), "status.phase", "Lost")
		}},
	}
}

func (w *world) claims() target { return w.in("v1", "persistentvolumeclaims", "PersistentVolumeClaim") }

// claim is a claim named a for a volume of a storage class that does not exist.
func (w *world) claim() object { return w.claims().new("a", claimed()) }

func claimed() object {
	return object{
		"spec.accessModes": []string{"ReadWriteOnce"}, "spec.resources": object{"requests": object{"storage": "1Gi"}},
		"spec.storageClassName": "none",
	}
}

// workload is the spec of a workload with no replicas.
func workload() object {
	return object{
		"spec.replicas": 0,
		"spec.selector": object{"matchLabels": object{"app": "a"}},
		"spec.template": object{
			"metadata": object{"labels": object{"app": "a"}},
			"spec":     object{"containers": []object{{"name": "main", "image": "example.org/app:1"}}},
		},
	}
}

func workloads() []behaviour {
	return []behaviour{
		{"apps: a Deployment gets defaults", func(w *world) {
			made := w.in("apps/v1", "deployments", "Deployment").create("a", workload())
			w.want(made, "metadata.generation", 1)
			w.want(made, "spec.strategy", object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": "25%", "maxUnavailable": "25%"}})
			w.want(made, "spec.revisionHistoryLimit", 10)
			w.want(made, "spec.template.spec.restartPolicy", "Always")
			w.want(made, "spec.template.spec.containers.0", object{
				"name": "main", "image": "example.org/app:1", "imagePullPolicy": "IfNotPresent", "resources": object{},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			})
		}},
		{"apps: a StatefulSet gets defaults", func(w *world) {
			made := w.in("apps/v1", "statefulsets", "StatefulSet").create("a", workload(), object{"spec.serviceName": "a"})
			w.want(made, "spec.podManagementPolicy", "OrderedReady")
			w.want(made, "spec.updateStrategy.type", "RollingUpdate")
			w.want(made, "spec.updateStrategy.rollingUpdate.partition", 0)
		}},
		{"apps: a change of the spec raises the generation", func(w *world) {
			deployments := w.in("apps/v1", "deployments", "Deployment")
			deployments.create("a", workload())
			w.want(deployments.merge("a", object{"spec": object{"paused": true}}).ok(), "metadata.generation", 2)
		}},
		{"apps: the selector of a Deployment cannot be changed", func(w *world) {
			deployments := w.in("apps/v1", "deployments", "Deployment")
			deployments.create("a", workload())
			deployments.merge("a", object{"spec": object{
				"selector": object{"matchLabels": object{"app": "b"}},
				"template": object{"metadata": object{"labels": object{"app": "b"}}},
			}}).refused(http.StatusUnprocessableEntity, "Invalid", "spec.selector: Invalid value", "field is immutable")
		}},
		{"apps: most of a StatefulSet cannot be changed", func(w *world) {
			sets := w.in("apps/v1", "statefulsets", "StatefulSet")
			sets.create("a", workload(), object{"spec.serviceName": "a"})
			sets.merge("a", object{"spec": object{"serviceName": "b"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec: Forbidden: updates to statefulset spec for fields other than 'replicas'")
		}},
		{"apps: labels that the selector does not match are 422", func(w *world) {
			body := w.in("apps/v1", "deployments", "Deployment").new("a", workload(), object{"spec.selector": object{"matchLabels": object{"app": "b"}}})
			w.in("apps/v1", "deployments", "Deployment").post(body).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec.template.metadata.labels: Invalid value", "`selector` does not match template `labels`")
		}},
		{"apps: a Deployment is applied twice without a second write", func(w *world) {
			deployments := w.in("apps/v1", "deployments", "Deployment")
			body := deployments.new("a", workload(), object{"spec.paused": true})
			deployments.apply("one", body).is(http.StatusCreated)
			uid := deployments.get("a").uid()
			again := deployments.apply("one", body).is(http.StatusOK)
			w.want(again, "metadata.uid", uid)
			w.want(again, "metadata.generation", 1)
		}},
	}
}

func recordingEvents() []behaviour {
	core := func(w *world) target { return w.in("v1", "events", "Event") }
	events := func(w *world) target { return w.in("events.k8s.io/v1", "events", "Event") }
	about := func(w *world) object {
		return object{"apiVersion": group + "/v1", "kind": "Widget", "name": "a", "namespace": w.namespace}
	}
	return []behaviour{
		{"events: one in the new form shows in the old one", func(w *world) {
			events(w).create("a", object{
				"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "einmal.dev/tests", "reportingInstance": "one",
				"action": "Try", "reason": "Tried", "type": "Normal", "note": "it was tried", "regarding": about(w),
			})
			seen := core(w).get("a")
			w.want(seen, "message", "it was tried")
			w.want(seen, "involvedObject.name", "a")
			w.want(seen, "reportingComponent", "einmal.dev/tests")
		}},
		{"events: one in the old form shows in the new one", func(w *world) {
			core(w).create("a", object{
				"involvedObject": about(w), "reason": "Tried", "message": "it was tried", "type": "Normal", "count": 1,
				"firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "source": object{"component": "tests"},
			})
			seen := events(w).get("a")
			w.want(seen, "note", "it was tried")
			w.want(seen, "deprecatedCount", 1)
			w.want(seen, "regarding.kind", "Widget")
		}},
		{"events: a series is patched", func(w *world) {
			events(w).create("a", object{
				"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "einmal.dev/tests", "reportingInstance": "one",
				"action": "Try", "reason": "Tried", "type": "Warning", "regarding": about(w),
			})
			series := object{"count": 2, "lastObservedTime": "2020-01-01T00:01:00.000000Z"}
			changed := events(w).patch(strategicType, "a", object{"series": series}).ok()
			w.want(changed, "series", series)
		}},
		{"events: the count in the old form is patched", func(w *world) {
			core(w).create("a", object{"involvedObject": about(w), "reason": "Tried", "type": "Normal", "count": 1})
			w.want(core(w).patch(strategicType, "a", object{"count": 2, "message": "again"}).ok(), "count", 2)
		}},
		{"events: the old form has no limit for the source", func(w *world) {
			long := strings.Repeat("a", 98) + ".b"
			core(w).create("a", object{"involvedObject": about(w), "reason": "Tried", "source": object{"component": long}, "reportingComponent": long})
		}},
		{"events: one about another namespace is 422", func(w *world) {
			core(w).post(core(w).new("a", object{"involvedObject": about(w).with("namespace", "other")})).refused(
				http.StatusUnprocessableEntity, "Invalid", `involvedObject.namespace: Invalid value: "other": does not match event.namespace`)
		}},
		{"events: the new form needs its fields", func(w *world) {
			refused := events(w).post(events(w).new("a", object{"regarding": about(w)})).is(http.StatusUnprocessableEntity)
			if message := refused.text("message"); !strings.Contains(message, "eventTime: Required value") || !strings.Contains(message, "type: Invalid value") {
				w.Errorf("the refusal is %s", message)
			}
		}},
		{"events: are selected by what they are about", func(w *world) {
			core(w).create("a", object{"involvedObject": about(w), "reason": "Tried", "type": "Normal"})
			core(w).create("b", object{"involvedObject": about(w).with("name", "b"), "reason": "Tried", "type": "Normal"})
			w.want(object{"names": w.names(core(w).list("fieldSelector", "involvedObject.name=b"))}, "names", []string{"b"})
		}},
	}
}

func leasing() []behaviour {
	leases := func(w *world) target { return w.in("coordination.k8s.io/v1", "leases", "Lease") }
	held := func(by string) object {
		return object{
			"spec.holderIdentity": by, "spec.leaseDurationSeconds": 15,
			"spec.acquireTime": "2020-01-01T00:00:00.123456Z", "spec.renewTime": "2020-01-01T00:00:00.123456Z",
		}
	}
	return []behaviour{
		{"lease: of two that take it, one gets it", func(w *world) {
			made := leases(w).create("a", held("one"))
			leases(w).put(made.with("spec.holderIdentity", "two")).ok()
			leases(w).put(made.with("spec.holderIdentity", "three")).refused(http.StatusConflict, "Conflict",
				`Operation cannot be fulfilled on leases.coordination.k8s.io "a": `+modified)
			w.want(leases(w).get("a"), "spec.holderIdentity", "two")
		}},
		{"lease: a second one of the name is 409", func(w *world) {
			leases(w).create("a", held("one"))
			leases(w).post(leases(w).new("a", held("two"))).refused(http.StatusConflict, "AlreadyExists")
		}},
		{"lease: times keep their microseconds", func(w *world) {
			w.want(leases(w).create("a", held("one")), "spec.renewTime", "2020-01-01T00:00:00.123456Z")
		}},
		{"lease: a PUT without a resourceVersion is 422", func(w *world) {
			leases(w).create("a", held("one"))
			leases(w).put(leases(w).new("a", held("two"))).refused(http.StatusUnprocessableEntity, "Invalid", "must be specified for an update")
		}},
		{"lease: a duration of nothing is 422", func(w *world) {
			leases(w).post(leases(w).new("a", held("one"), object{"spec.leaseDurationSeconds": 0})).refused(http.StatusUnprocessableEntity, "Invalid",
				"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")
		}},
	}
}
