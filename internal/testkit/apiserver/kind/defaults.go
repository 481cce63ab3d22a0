package kind

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// set gives a field its default if it has the zero value.
func set[T comparable](value *T, to T) {
	var zero T
	if *value == zero {
		*value = to
	}
}

// point gives an optional field its default if it has no value.
func point[T any](value **T, to T) {
	if *value == nil {
		*value = &to
	}
}

func defaultNamespace(n *corev1.Namespace) {
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func defaultSecret(s *corev1.Secret) {
	set(&s.Type, corev1.SecretTypeOpaque)
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func defaultClaim(c *corev1.PersistentVolumeClaim) {
	point(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	set(&c.Status.Phase, corev1.ClaimPending)
}

func defaultPod(p *corev1.Pod) {
	defaultPodSpec(&p.Spec)
	point(&p.Spec.EnableServiceLinks, true)
	set(&p.Status.Phase, corev1.PodPending)
}

func defaultPodSpec(s *corev1.PodSpec) {
	set(&s.DNSPolicy, corev1.DNSClusterFirst)
	set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	set(&s.SchedulerName, corev1.DefaultSchedulerName)
	point(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	point(&s.SecurityContext, corev1.PodSecurityContext{})
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
	set(&s.DeprecatedServiceAccount, s.ServiceAccountName)
}

func defaultVolume(v *corev1.VolumeSource) {
	switch {
	case *v == corev1.VolumeSource{}:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case v.Secret != nil:
		point(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		point(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
}

func defaultContainer(c *corev1.Container) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	_, tag, tagged := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
	if !tagged || tag == "latest" {
		set(&c.ImagePullPolicy, corev1.PullAlways)
	}
	set(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			set(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if handler != nil {
			defaultHTTPGet(handler.HTTPGet)
		}
	}
}

func defaultProbe(p *corev1.Probe) {
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		set(&get.Path, "/")
		set(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultService(s *corev1.Service) {
	set(&s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	set(&s.Spec.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Spec.Ports {
		set(&s.Spec.Ports[i].Protocol, corev1.ProtocolTCP)
		if target := &s.Spec.Ports[i].TargetPort; *target == intstr.FromString("") {
			*target = intstr.FromInt32(s.Spec.Ports[i].Port)
		}
		set(&s.Spec.Ports[i].TargetPort, intstr.FromInt32(s.Spec.Ports[i].Port))
	}
	point(&s.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
}

func defaultDeployment(d *appsv1.Deployment) {
	point(&d.Spec.Replicas, 1)
	strategy := &d.Spec.Strategy
	set(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		point(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		point(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		point(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	point(&d.Spec.RevisionHistoryLimit, 10)
	point(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	set(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	update := &s.Spec.UpdateStrategy
	if update.Type == "" {
		update.Type = appsv1.RollingUpdateStatefulSetStrategyType
		point(&update.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if update.RollingUpdate != nil {
		point(&update.RollingUpdate.Partition, 0)
	}
	point(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	point(&s.Spec.Replicas, 1)
	point(&s.Spec.RevisionHistoryLimit, 10)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		set(&claim.APIVersion, "v1")
		set(&claim.Kind, "PersistentVolumeClaim")
		defaultClaim(claim)
	}
	defaultPodSpec(&s.Spec.Template.Spec)
}

func defaultDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
}
