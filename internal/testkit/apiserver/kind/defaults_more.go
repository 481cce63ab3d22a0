package kind

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func defaultJob(j *batchv1.Job) {
	if len(j.Labels) == 0 && j.Spec.Template.Labels != nil {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
	if j.Spec.Parallelism == nil {
		point(&j.Spec.Completions, 1)
	}
	point(&j.Spec.Parallelism, 1)
	point(&j.Spec.BackoffLimit, 6)
	point(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	point(&j.Spec.Suspend, false)
	point(&j.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	point(&j.Spec.ManualSelector, false)
	defaultPodSpec(&j.Spec.Template.Spec)
}

func defaultCronJob(c *batchv1.CronJob) {
	set(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	point(&c.Spec.Suspend, false)
	point(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	point(&c.Spec.FailedJobsHistoryLimit, 1)
	defaultPodSpec(&c.Spec.JobTemplate.Spec.Template.Spec)
}

// selectOwn gives a Job labels and a selector of its own.
func selectOwn(object *unstructured.Unstructured) {
	job, err := decodeAs[batchv1.Job](object)
	if err != nil || job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return
	}
	labels := map[string]string{
		"job-name": job.Name, batchv1.JobNameLabel: job.Name, "controller-uid": string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
	}
	maps.Copy(labels, job.Spec.Template.Labels)
	job.Spec.Template.Labels = labels
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{}
	}
	selected := map[string]string{batchv1.ControllerUidLabel: string(job.UID)}
	maps.Copy(selected, job.Spec.Selector.MatchLabels)
	job.Spec.Selector.MatchLabels = selected
	if spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&job.Spec); err == nil {
		object.Object["spec"] = spec
	}
}

func defaultRoleBinding(b *rbacv1.RoleBinding) { set(&b.RoleRef.APIGroup, rbacv1.GroupName) }

func defaultStorageClass(c *storagev1.StorageClass) {
	point(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	point(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}
