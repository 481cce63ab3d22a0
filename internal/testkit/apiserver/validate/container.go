package validate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containers checks all containers of a pod, which have names of their own.
func containers(at *field.Path, spec *corev1.PodSpec) field.ErrorList {
	volumes := volumeNames(spec)
	names := unique{}
	list := at.Child("containers")
	refused := when(len(spec.Containers) == 0, field.Required(list, ""))
	for i := range spec.Containers {
		one := &spec.Containers[i]
		refused = append(refused, container(list.Index(i), one, volumes)...)
		refused = append(refused, names.add(list.Index(i).Child("name"), one.Name, one.Name)...)
	}
	list = at.Child("initContainers")
	for i := range spec.InitContainers {
		one := &spec.InitContainers[i]
		refused = append(refused, container(list.Index(i), one, volumes)...)
		refused = append(refused, names.add(list.Index(i).Child("name"), one.Name, one.Name)...)
		refused = append(refused, initContainer(list.Index(i), one)...)
	}
	return refused
}

// initContainer checks what only a container that goes on running may have.
func initContainer(at *field.Path, c *corev1.Container) field.ErrorList {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return nil
	}
	const sidecar = "may not be set for init containers without restartPolicy=Always"
	return join(
		when(c.Lifecycle != nil, field.Forbidden(at.Child("lifecycle"), sidecar)),
		when(c.LivenessProbe != nil, field.Forbidden(at.Child("livenessProbe"), sidecar)),
		when(c.ReadinessProbe != nil, field.Forbidden(at.Child("readinessProbe"), sidecar)),
		when(c.StartupProbe != nil, field.Forbidden(at.Child("startupProbe"), sidecar)),
	)
}

func container(at *field.Path, c *corev1.Container, volumes map[string]bool) field.ErrorList {
	refused := join(
		named(at.Child("name"), c.Name, validation.IsDNS1123Label),
		required(at.Child("image"), c.Image),
		oneOf(at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
			corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError),
		oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
		containerPorts(at.Child("ports"), c.Ports),
		environment(at.Child("env"), c.Env),
		environmentFrom(at.Child("envFrom"), c.EnvFrom),
		mounts(at.Child("volumeMounts"), c.VolumeMounts, volumes),
		resources(at.Child("resources"), &c.Resources),
		securityContext(at.Child("securityContext"), c.SecurityContext),
	)
	if c.Lifecycle != nil {
		refused = append(refused, lifecycleHandler(at.Child("lifecycle", "postStart"), c.Lifecycle.PostStart)...)
		refused = append(refused, lifecycleHandler(at.Child("lifecycle", "preStop"), c.Lifecycle.PreStop)...)
	}
	refused = append(refused, probe(at.Child("livenessProbe"), c.LivenessProbe)...)
	refused = append(refused, probe(at.Child("readinessProbe"), c.ReadinessProbe)...)
	refused = append(refused, probe(at.Child("startupProbe"), c.StartupProbe)...)
	return append(refused, once(at, c)...)
}

// once checks the probes that end with their first success, and the one that cannot end a container.
func once(at *field.Path, c *corev1.Container) field.ErrorList {
	var refused field.ErrorList
	for name, of := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} {
		if of != nil {
			refused = append(refused, when(of.SuccessThreshold != 1,
				field.Invalid(at.Child(name, "successThreshold"), of.SuccessThreshold, "must be 1"))...)
		}
	}
	if of := c.ReadinessProbe; of != nil && of.TerminationGracePeriodSeconds != nil {
		refused = append(refused, field.Invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"),
			of.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return refused
}

func containerPorts(at *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var refused field.ErrorList
	names := unique{}
	for i, port := range ports {
		here := at.Index(i)
		if port.Name != "" {
			refused = append(refused, invalid(here.Child("name"), port.Name, validation.IsValidPortName(port.Name)...)...)
			refused = append(refused, names.add(here.Child("name"), port.Name, port.Name)...)
		}
		if port.ContainerPort == 0 {
			refused = append(refused, field.Required(here.Child("containerPort"), ""))
		} else {
			refused = append(refused, portNumber(here.Child("containerPort"), port.ContainerPort)...)
		}
		refused = append(refused, oneOf(here.Child("protocol"), port.Protocol, protocols()...)...)
	}
	return refused
}

func protocols() []corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
}

func environment(at *field.Path, variables []corev1.EnvVar) field.ErrorList {
	var refused field.ErrorList
	for i, variable := range variables {
		here := at.Index(i)
		refused = append(refused, named(here.Child("name"), variable.Name, validation.IsRelaxedEnvVarName)...)
		if variable.ValueFrom != nil {
			refused = append(refused, valueFrom(here.Child("valueFrom"), variable)...)
		}
	}
	return refused
}

func valueFrom(at *field.Path, variable corev1.EnvVar) field.ErrorList {
	from := variable.ValueFrom
	var refused field.ErrorList
	sources := 0
	if ref := from.FieldRef; ref != nil {
		sources++
		refused = append(refused, fieldReference(at.Child("fieldRef"), ref)...)
	}
	if from.ResourceFieldRef != nil || from.FileKeyRef != nil {
		sources++ // They are not checked.
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		refused = append(refused, keyReference(at.Child("configMapKeyRef"), ref.Name, ref.Key)...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		refused = append(refused, keyReference(at.Child("secretKeyRef"), ref.Name, ref.Key)...)
	}
	switch {
	case sources == 0:
		return append(refused, field.Invalid(at, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case variable.Value != "":
		return append(refused, field.Invalid(at, "", "may not be specified when `value` is not empty"))
	}
	return append(refused, when(sources > 1, field.Invalid(at, "", "may not have more than one field specified at a time"))...)
}

func keyReference(at *field.Path, name, key string) field.ErrorList {
	return join(named(at.Child("name"), name, subdomain), named(at.Child("key"), key, validation.IsConfigMapKey))
}

func fieldReference(at *field.Path, ref *corev1.ObjectFieldSelector) field.ErrorList {
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at.Child("fieldPath"), "")}
	}
	if strings.HasPrefix(ref.FieldPath, "metadata.annotations['") || strings.HasPrefix(ref.FieldPath, "metadata.labels['") {
		return nil
	}
	supported := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	return oneOf(at.Child("fieldPath"), ref.FieldPath, supported...)
}

func environmentFrom(at *field.Path, sources []corev1.EnvFromSource) field.ErrorList {
	var refused field.ErrorList
	for i, source := range sources {
		here := at.Index(i)
		if source.Prefix != "" {
			refused = append(refused, invalid(here.Child("prefix"), source.Prefix, validation.IsRelaxedEnvVarName(source.Prefix)...)...)
		}
		switch {
		case source.ConfigMapRef != nil && source.SecretRef != nil:
			refused = append(refused, field.Invalid(here, "", "may not have more than one field specified at a time"))
		case source.ConfigMapRef != nil:
			refused = append(refused, named(here.Child("configMapRef", "name"), source.ConfigMapRef.Name, subdomain)...)
		case source.SecretRef != nil:
			refused = append(refused, named(here.Child("secretRef", "name"), source.SecretRef.Name, subdomain)...)
		default:
			refused = append(refused, field.Invalid(here, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return refused
}

func mounts(at *field.Path, list []corev1.VolumeMount, volumes map[string]bool) field.ErrorList {
	var refused field.ErrorList
	var paths []string
	for i, mount := range list {
		here := at.Index(i)
		refused = append(refused, required(here.Child("name"), mount.Name)...)
		refused = append(refused, when(!volumes[mount.Name], field.NotFound(here.Child("name"), mount.Name))...)
		refused = append(refused, required(here.Child("mountPath"), mount.MountPath)...)
		refused = append(refused, when(slices.Contains(paths, mount.MountPath), field.Invalid(here.Child("mountPath"), mount.MountPath, "must be unique"))...)
		paths = append(paths, mount.MountPath)
		refused = append(refused, descending(here.Child("subPath"), mount.SubPath)...)
		refused = append(refused, descending(here.Child("subPathExpr"), mount.SubPathExpr)...)
		refused = append(refused, when(mount.SubPath != "" && mount.SubPathExpr != "",
			field.Invalid(here.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))...)
	}
	return refused
}
