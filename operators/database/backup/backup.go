// Package backup decides from the Jobs that make backups how the backups of a Database are.
package backup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// nameLayout is the layout of the name of a backup, which is the time when it began, in UTC: see backup.sh.
const nameLayout = "20060102T150405Z"

// Schedule says when backups are made.
type Schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// ParseSchedule returns the schedule of a spec, or an error that names the field and the remedy.
func ParseSchedule(spec v1.Backup) (Schedule, error) {
	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil || spec.TimeZone == "Local" {
		return Schedule{}, fmt.Errorf("spec.backup.timeZone: there is no time zone %q; write a name such as Europe/Berlin or Etc/UTC", spec.TimeZone)
	}
	var times cron.Schedule
	if !strings.Contains(spec.Schedule, "TZ=") { // CronJobs do not accept a time zone in a schedule.
		times, err = cron.ParseStandard(spec.Schedule)
	}
	if err != nil || times == nil {
		return Schedule{}, fmt.Errorf("spec.backup.schedule: %q is not a schedule; write five fields as of cron, for example %q for each day at 03:00", spec.Schedule, "0 3 * * *")
	}
	return Schedule{times, zone}, nil
}

// Next returns when the next backup after a time is due.
func (s Schedule) Next(after time.Time) time.Time { return s.times.Next(after.In(s.zone)) }

// Outdated returns when a backup that began at a time is older than two periods.
func (s Schedule) Outdated(begun time.Time) time.Time { return s.Next(s.Next(begun)) }

// Ended returns the last Jobs that have made a backup and that have failed. Each is nil if there is none.
func Ended(jobs []batchv1.Job) (success, failure *batchv1.Job) {
	for i := range jobs {
		job := &jobs[i]
		switch {
		case hasEnded(job, batchv1.JobComplete) && (success == nil || success.Status.StartTime.Before(job.Status.StartTime)):
			success = job
		case hasEnded(job, batchv1.JobFailed) && (failure == nil || failedAt(failure).Before(failedAt(job))):
			failure = job
		}
	}
	return success, failure
}

// Running returns the Jobs that have not ended.
func Running(jobs []batchv1.Job) []batchv1.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(job batchv1.Job) bool {
		return hasEnded(&job, batchv1.JobComplete) || hasEnded(&job, batchv1.JobFailed)
	})
}

func hasEnded(job *batchv1.Job, as batchv1.JobConditionType) bool { return condition(job, as) != nil }

func condition(job *batchv1.Job, of batchv1.JobConditionType) *batchv1.JobCondition {
	for i, one := range job.Status.Conditions {
		if one.Type == of && one.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// failedAt returns when a Job has failed.
func failedAt(job *batchv1.Job) *metav1.Time {
	return &condition(job, batchv1.JobFailed).LastTransitionTime
}

// Result returns the backup that a Job has made. Message is the termination message of its container, or "" if the Pod does not exist any more, and location
// where the backups are.
func Result(job *batchv1.Job, message, location string) *v1.BackupResult {
	result := &v1.BackupResult{Job: job.Name, Time: metav1.Time{}}
	if job.Status.StartTime != nil {
		result.Time = *job.Status.StartTime
	}
	fields := strings.Fields(message)
	if len(fields) != 3 {
		return result
	}
	begun, wrong := time.Parse(nameLayout, fields[0])
	size, err := strconv.ParseInt(fields[1], 10, 64)
	if wrong != nil || err != nil {
		return result
	}
	result.Name, result.Time, result.Source = fields[0], metav1.NewTime(begun), v1.Role(fields[2])
	result.Location, result.Size = location+"/"+fields[0], resource.NewQuantity(size, resource.BinarySI)
	return result
}

// Failure returns why a Job has failed. Message is the termination message of its Pod, or "" if there is none.
func Failure(job *batchv1.Job, message string) *v1.BackupFailure {
	failed := condition(job, batchv1.JobFailed)
	if message == "" || !slices.Contains([]string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonPodFailurePolicy}, failed.Reason) {
		message = strings.TrimSuffix(strings.TrimPrefix(failed.Reason+": "+failed.Message+"; "+message, ": "), "; ")
	}
	return &v1.BackupFailure{Job: job.Name, Time: failed.LastTransitionTime, Message: message}
}
