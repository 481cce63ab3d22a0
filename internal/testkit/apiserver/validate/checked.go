package validate

import (
	"fmt"
	"slices"
	"strings"
)

// Checked holds the fields of a kind that this package checks, or whose only rule is their type. A field without children
// is checked with everything below it. Items of lists have no element of their own. A child whose name begins with "=" is a value that is
// checked: the others of its field are not.
type Checked map[string]Checked

// NewChecked makes a tree of paths like "spec.template.metadata". A path like "spec.type=ClusterIP" ends with a value.
func NewChecked(paths ...string) Checked {
	tree := Checked{}
	for _, path := range paths {
		node := tree
		for element := range strings.SplitSeq(strings.Replace(path, "=", ".=", 1), ".") {
			if node[element] == nil {
				node[element] = Checked{}
			}
			node = node[element]
		}
	}
	return tree
}

// Missing returns the paths of the fields of an object that are not checked, in order. A path ends with "=" and the value if other values of
// the field are checked. Metadata and status are not looked at.
func (c Checked) Missing(object map[string]any) []string {
	var missing []string
	for name, value := range object {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			missing = c.missing(missing, name, name, value)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func (c Checked) missing(found []string, path, name string, value any) []string {
	below, known := c[name]
	switch {
	case value == nil:
		return found
	case !known:
		return append(found, path)
	case len(below) == 0:
		return found
	}
	return below.missingIn(found, path, value)
}

func (c Checked) missingIn(found []string, path string, value any) []string {
	switch typed := value.(type) {
	case map[string]any:
		for name, child := range typed {
			found = c.missing(found, path+"."+name, name, child)
		}
	case []any:
		for _, item := range typed {
			found = c.missingIn(found, path, item)
		}
	default:
		if text := fmt.Sprint("=", typed); c[text] == nil {
			found = append(found, path+text)
		}
	}
	return found
}

// below puts paths under another one.
func below(parent string, paths []string) []string {
	var found []string
	for _, path := range paths {
		found = append(found, parent+"."+path)
	}
	return found
}

// PodFields are the fields of a Pod that are checked.
func PodFields() []string { return below("spec", podFields()) }

func podFields() []string {
	return slices.Concat([]string{
		"restartPolicy", "terminationGracePeriodSeconds", "dnsPolicy", "nodeSelector", "nodeName", "schedulerName",
		"serviceAccountName", "serviceAccount", "automountServiceAccountToken", "hostname", "subdomain", "enableServiceLinks",
		"shareProcessNamespace", "imagePullSecrets",
		"volumes.name", "volumes.emptyDir", "volumes.secret", "volumes.configMap", "volumes.persistentVolumeClaim",
		"initContainers.restartPolicy",
	}, below("securityContext", []string{
		"runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "seccompProfile.type=RuntimeDefault",
	}), below("containers", containerFields()), below("initContainers", containerFields()))
}

func containerFields() []string {
	handlers := []string{"exec", "httpGet", "tcpSocket"}
	probes := append([]string{
		"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds", "grpc",
	}, handlers...)
	return slices.Concat(
		[]string{
			"name", "image", "command", "args", "workingDir", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy",
			"stdin", "stdinOnce", "tty", "ports.name", "ports.containerPort", "ports.protocol", "env.name", "env.value",
			"env.valueFrom.fieldRef.fieldPath", "env.valueFrom.fieldRef.apiVersion=v1", "env.valueFrom.configMapKeyRef", "env.valueFrom.secretKeyRef",
			"envFrom",
		},
		below("resources.requests", resourceNames()), below("resources.limits", resourceNames()),
		below("volumeMounts", []string{"name", "mountPath", "readOnly", "subPath", "subPathExpr"}),
		below("securityContext", []string{
			"runAsUser", "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "privileged", "capabilities",
			"seccompProfile.type=RuntimeDefault",
		}),
		below("livenessProbe", probes), below("readinessProbe", probes), below("startupProbe", probes),
		below("lifecycle.postStart", handlers), below("lifecycle.preStop", handlers),
	)
}

// resourceNames are the resources that every node has.
func resourceNames() []string { return []string{"cpu", "memory", "ephemeral-storage"} }

func templateFields() []string {
	return append(below("template.spec", podFields()), "template.metadata")
}

// DeploymentFields are the fields of a Deployment that are checked.
func DeploymentFields() []string {
	return below("spec", append(templateFields(),
		"replicas", "selector", "strategy", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds", "paused"))
}

// StatefulSetFields are the fields of a StatefulSet that are checked.
func StatefulSetFields() []string {
	claims := below("volumeClaimTemplates", append(ClaimFields(), "apiVersion", "kind", "metadata", "status"))
	return below("spec", slices.Concat(templateFields(), claims, []string{
		"replicas", "selector", "serviceName", "podManagementPolicy", "updateStrategy.type", "updateStrategy.rollingUpdate.partition",
		"minReadySeconds", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
	}))
}

// ClaimFields are the fields of a PersistentVolumeClaim that are checked.
func ClaimFields() []string {
	return below("spec", []string{"accessModes", "resources.requests", "selector", "storageClassName", "volumeMode", "volumeName"})
}

// ServiceFields are the fields of a Service that are checked.
func ServiceFields() []string {
	return below("spec", []string{
		"type=ClusterIP", "type=LoadBalancer", "type=NodePort", "ports", "selector", "sessionAffinity=None", "clusterIP", "clusterIPs",
		"ipFamilies=IPv4", "ipFamilyPolicy=SingleStack", "internalTrafficPolicy=Cluster", "publishNotReadyAddresses",
	})
}
