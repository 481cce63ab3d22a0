package main

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// backupTime is how long a backup takes.
const backupTime = 2 * time.Minute

// backups plays the controllers of Jobs and the script backup.sh.
type backups struct {
	// failure is the termination message of backups that fail, and "" if they succeed.
	failure string
	// pending is the status of Pods that do not start.
	pending string
	// lost reports whether the Pods of Jobs that have ended are deleted before the operator sees them.
	lost bool
	// made counts the Jobs that have made a backup, by their names.
	made map[string]int
}

// schedule makes a Job of the CronJob, as its controller does when it is due.
func (n *modelNode) schedule(name string) {
	cron := &batchv1.CronJob{ObjectMeta: in("orders-db-backup")}
	if !n.w.Get(cron) {
		n.w.Fatal("there is no CronJob")
	}
	job := &batchv1.Job{ObjectMeta: in(name), Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	job.Labels = cron.Spec.JobTemplate.Labels
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	n.w.Create(job)
}

// job runs a Job. A Pod that cannot start stays.
func (n *modelNode) job(job *batchv1.Job) {
	if job.Status.StartTime != nil {
		return
	}
	started := time.Now()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = job.Namespace, job.Name+"-x"
	pod.Labels[batchv1.JobNameLabel] = job.Name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	n.create(pod)
	n.patchStatus(job, fmt.Sprintf(`{"startTime":%q}`, timeText(started)))
	if n.backups.pending != "" {
		n.patchStatus(pod, n.backups.pending)
		return
	}
	<-time.After(backupTime)
	n.endJob(job, pod, started)
}

// endJob ends a Job as the script backup.sh does.
func (n *modelNode) endJob(job *batchv1.Job, pod *corev1.Pod, started time.Time) {
	phase, code, message := corev1.PodSucceeded, 0, started.UTC().Format("20060102T150405Z")+" 1048576 standby"
	if n.backups.failure != "" {
		phase, code, message = corev1.PodFailed, 1, n.backups.failure
	} else if n.backups.made != nil {
		n.backups.made[job.Name]++
	}
	now := timeText(time.Now())
	ended := func(container string, code int, message string) string {
		return fmt.Sprintf(`[{"name":%q,"ready":false,"restartCount":0,"image":"i","imageID":"i","state":{"terminated":{"exitCode":%d,"message":%q,"startedAt":%q,"finishedAt":%q}}}]`,
			container, code, message, timeText(started), now)
	}
	statuses := `"containerStatuses":` + ended(manifest.BackupContainer, code, message)
	if len(pod.Spec.InitContainers) > 0 { // The backup is in the volume, and then copied to a bucket.
		copied := ""
		if code > 0 {
			copied, message = message, "20261127T030000Z 1048576 primary"
		}
		statuses = `"initContainerStatuses":` + ended(manifest.BackupContainer, 0, message) + `,"containerStatuses":` + ended(pod.Spec.Containers[0].Name, code, copied)
	}
	n.patchStatus(pod, fmt.Sprintf(`{"phase":%q,%s}`, phase, statuses))
	if n.backups.lost {
		if err := n.w.Client().Delete(n.w.Context(), pod); client.IgnoreNotFound(err) != nil {
			n.w.Errorf("delete the Pod %s: %v", pod.Name, err)
		}
	}
	result := fmt.Sprintf(`{"completionTime":%q,"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%[1]q},
		{"type":"Complete","status":"True","lastTransitionTime":%[1]q}]}`, now)
	if code > 0 {
		reason, said := batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
		if job.Spec.PodFailurePolicy != nil {
			reason, said = batchv1.JobReasonPodFailurePolicy, "Container upload for pod default/"+pod.Name+" failed with exit code 1 matching FailJob rule at index 0"
		}
		result = fmt.Sprintf(`{"failed":1,"conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":%[1]q},{"type":"Failed","status":"True",
			"reason":%q,"message":%q,"lastTransitionTime":%[1]q}]}`, now, reason, said)
	}
	n.patchStatus(job, result)
}

func timeText(at time.Time) string { return at.UTC().Format(time.RFC3339) }
