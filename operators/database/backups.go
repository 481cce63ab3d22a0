package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/backup"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

const (
	// backupAnnotation is the annotation of a Database with which a person asks for a backup now. Its value is a name for the request. The operator
	// makes one backup for each value.
	backupAnnotation = "database.einmal.dev/backup"
	// awaitDatabase is how soon the operator looks again whether a database can be backed up that a person wants to.
	awaitDatabase = 10 * time.Second
)

// handleBackups declares the handlers of backups. Whether they succeed has no effect on the database.
func (d *databases) handleBackups(of *einmal.Kind[v1.Database]) {
	of.Reconcile("back-up", d.backUp, einmal.Fields("spec", "status.dataVersion", "status.image"),
		einmal.Prunes[batchv1.CronJob](), einmal.Applies(&batchv1.CronJob{}),
		einmal.Watches(backedUp, einmal.GVK("batch", "v1", "Job")), einmal.Watches(backedUp, einmal.GVK("", "v1", "Pod")),
		einmal.Watches(backedUp, einmal.GVK("", "v1", "PersistentVolumeClaim")),
		einmal.Permissions(&batchv1.Job{}, "list"), einmal.Permissions(&corev1.Pod{}, "list"),
		einmal.Permissions(&corev1.PersistentVolumeClaim{}, "get", "create", "patch"))
	einmal.OnField(of, "back-up-now", "metadata.annotations["+backupAnnotation+"]", d.backUpNow, einmal.AlsoAtCreation(),
		einmal.Permissions(&batchv1.Job{}, "get", "create"))
	of.OnDelete("forget-backups", func(_ context.Context, c *change) error {
		d.metrics.Forget(c.Object)
		return nil
	}, einmal.WithoutFinalizer())
}

// backedUp returns the Database whose backup a Job or Pod makes, or a claim holds.
func backedUp(object *metav1.PartialObjectMetadata) []types.NamespacedName {
	if name := object.Labels[manifest.BackupOfLabel]; name != "" {
		return []types.NamespacedName{{Name: name}}
	}
	return nil
}

// backUp lets Kubernetes make backups on the schedule of the spec, and writes into the status how they are.
func (d *databases) backUp(ctx context.Context, c *change) error {
	db := c.Object
	if !supported(db) {
		set(db, no(v1.ConditionBackupHealthy, "EngineNotSupported", engineMessage(db)))
		return nil
	}
	if disabled(db) {
		d.metrics.Forget(db)
		set(db, no(v1.ConditionBackupHealthy, "Disabled", "spec.backupEnabled is false"))
		return c.Prune(ctx, &batchv1.CronJob{})
	}
	if db.Status.DataVersion == "" || db.Status.Image == "" {
		set(db, no(v1.ConditionBackupHealthy, "WaitingForDatabase", "the database has not been created yet"))
		return nil
	}
	schedule, invalid := backup.ParseSchedule(db.Spec.Backup)
	if invalid != nil {
		set(db, no(v1.ConditionBackupHealthy, "ScheduleInvalid", invalid.Error()))
		return nil
	}
	begun, unkept := keepBackupClaim(ctx, c)
	applied := errors.Join(unkept, d.applySchedule(ctx, c))
	running, err := readBackups(ctx, c)
	if err != nil {
		return errors.Join(applied, err)
	}
	forgetBackups(db, begun)
	d.metrics.Set(db)
	before := reasonOf(db, v1.ConditionBackupHealthy)
	healthy := backupHealth(db, schedule, running)
	if refused := refusal(applied); refused != nil {
		healthy = no(v1.ConditionBackupHealthy, "ObjectRefused", refused.Error())
	}
	set(db, healthy)
	if healthy.Status == metav1.ConditionFalse && healthy.Reason != noBackup {
		tell(c, before, healthy, einmal.EventWarning)
	}
	if applied == nil && db.Status.Backup != nil && db.Status.Backup.LastSuccess != nil {
		if left := time.Until(schedule.Outdated(db.Status.Backup.LastSuccess.Time.Time)); left > 0 {
			return einmal.RequeueAfter(left)
		}
	}
	return applied
}

// applySchedule applies the CronJob.
func (d *databases) applySchedule(ctx context.Context, c *change) error {
	images, err := d.images.ofBackups(ctx, c)
	if err != nil {
		return err
	}
	return c.Apply(ctx, manifest.BackupSchedule(c.Object, images))
}

func disabled(db *v1.Database) bool { return db.Spec.BackupEnabled != nil && !*db.Spec.BackupEnabled }

// clockSkew is how far the clocks of a node and of the API server may be apart.
const clockSkew = time.Minute

// keepBackupClaim creates the claim of the backups, or lets it grow, and returns when it was created. The claim has no owner, so that the backups outlive
// the Database.
func keepBackupClaim(ctx context.Context, c *change) (time.Time, error) {
	wanted := manifest.BackupClaim(c.Object)
	claim, err := get(ctx, c, wanted.Name, &corev1.PersistentVolumeClaim{})
	switch {
	case err != nil:
		return time.Time{}, err
	case claim == nil:
		wanted.Namespace = c.Object.Namespace
		if err := c.Client.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
			return time.Time{}, fmt.Errorf("create the PersistentVolumeClaim %s: %w", wanted.Name, err)
		}
		return wanted.CreationTimestamp.Time, nil
	case claim.Labels[manifest.BackupOfLabel] != c.Object.Name:
		return time.Time{}, fmt.Errorf("the PersistentVolumeClaim %s exists and does not belong to this Database: delete it, or choose another name for the Database; "+
			"if its volume holds the backups of this Database: kubectl label --namespace %s persistentvolumeclaim %s %s=%s",
			claim.Name, c.Object.Namespace, claim.Name, manifest.BackupOfLabel, c.Object.Name)
	}
	if claim.DeletionTimestamp != nil {
		return claim.CreationTimestamp.Time, nil
	}
	if tracking := manifest.TrackingLabels(c.Object, claim); len(tracking) > 0 {
		removed := make(map[string]any)
		for _, key := range tracking {
			removed[key] = nil
		}
		if err := patch(ctx, c, claim, "metadata", map[string]any{"labels": removed}); err != nil {
			return claim.CreationTimestamp.Time, err
		}
	}
	size := manifest.BackupStorage(c.Object)
	if claim.Spec.Resources.Requests.Storage().Cmp(size) >= 0 {
		return claim.CreationTimestamp.Time, nil
	}
	return claim.CreationTimestamp.Time, patch(ctx, c, claim, "spec", map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size.String()}}})
}

// forgetBackups forgets the last backup if its claim was deleted: it is older than the claim that exists. One in a bucket stays.
func forgetBackups(db *v1.Database, claimed time.Time) {
	known := db.Status.Backup
	if known == nil || known.LastSuccess == nil || manifest.InBucket(known.LastSuccess.Location) {
		return
	}
	if known.LastSuccess.Time.Before(&metav1.Time{Time: claimed.Add(-clockSkew)}) {
		known.LastSuccess = nil
	}
}

// readBackups writes into the status what the Jobs have done, and returns what keeps a running one from starting.
func readBackups(ctx context.Context, c *change) (problem, error) {
	var jobs batchv1.JobList
	if err := c.Client.List(ctx, &jobs, client.InNamespace(c.Object.Namespace), client.MatchingLabels(manifest.BackupSelector(c.Object))); err != nil {
		return problem{}, fmt.Errorf("list the Jobs of backups: %w", err)
	}
	known := v1.BackupStatus{}
	if c.Object.Status.Backup != nil {
		known = *c.Object.Status.Backup
	}
	success, failure := backup.Ended(jobs.Items)
	var err, unread error
	known.LastSuccess, err = lastBackup(ctx, c, known.LastSuccess, success)
	known.LastFailure, unread = lastFailure(ctx, c, known.LastFailure, failure)
	if err := errors.Join(err, unread); err != nil {
		return problem{}, err
	}
	if known != (v1.BackupStatus{}) {
		c.Object.Status.Backup = &known
	}
	return startProblem(ctx, c, backup.Running(jobs.Items))
}

// lastBackup returns the last backup: the one that the status knows, or that of the last Job that has succeeded, which can be nil.
func lastBackup(ctx context.Context, c *change, known *v1.BackupResult, last *batchv1.Job) (*v1.BackupResult, error) {
	if last == nil || known != nil && known.Job == last.Name {
		return known, nil
	}
	pods, err := podsOf(ctx, c, last)
	if err != nil {
		return nil, err
	}
	made := backup.Result(last, lastMessage(pods, isSuccess), manifest.BackupLocation(last, manifest.Backup(c.Object)))
	if known != nil && !known.Time.Before(&made.Time) {
		return known, nil
	}
	return made, nil
}

// lastFailure returns the last failure: the one that the status knows, or that of the last Job that has failed, which can be nil.
func lastFailure(ctx context.Context, c *change, known *v1.BackupFailure, last *batchv1.Job) (*v1.BackupFailure, error) {
	if last == nil || known != nil && known.Job == last.Name {
		return known, nil
	}
	pods, err := podsOf(ctx, c, last)
	if err != nil {
		return nil, err
	}
	failed := backup.Failure(last, lastMessage(pods, isFailure))
	if known != nil && !known.Time.Before(&failed.Time) {
		return known, nil
	}
	return failed, nil
}

// startProblem returns what keeps the Pod of a Job from starting.
func startProblem(ctx context.Context, c *change, running []batchv1.Job) (problem, error) {
	for i := range running {
		pods, err := podsOf(ctx, c, &running[i])
		if err != nil {
			return problem{}, err
		}
		for j := range pods {
			if found := podProblem(&pods[j]); pods[j].Status.Phase == corev1.PodPending && found.reason != "Starting" {
				return found, nil
			}
		}
	}
	return problem{}, nil
}

// podsOf returns the Pods of a Job.
func podsOf(ctx context.Context, c *change, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, fmt.Errorf("list the Pods of the Job %s: %w", job.Name, err)
	}
	return pods.Items, nil
}

// isSuccess reports whether a container has made a backup.
func isSuccess(name string, ended corev1.ContainerStateTerminated) bool {
	return name == manifest.BackupContainer && ended.ExitCode == 0
}

// isFailure reports whether a container has failed.
func isFailure(_ string, ended corev1.ContainerStateTerminated) bool { return ended.ExitCode != 0 }

// lastMessage returns the termination message of the last container of this kind, or "".
func lastMessage(pods []corev1.Pod, of func(name string, ended corev1.ContainerStateTerminated) bool) string {
	var last *corev1.ContainerStateTerminated
	for _, pod := range pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			ended := status.State.Terminated
			if ended != nil && of(status.Name, *ended) && (last == nil || last.FinishedAt.Before(&ended.FinishedAt)) {
				last = ended
			}
		}
	}
	if last == nil {
		return ""
	}
	return last.Message
}

// noBackup is the reason of BackupHealthy before the first backup.
const noBackup = "NoBackup"

// backupHealth reports whether there is a recent backup.
func backupHealth(db *v1.Database, schedule backup.Schedule, running problem) metav1.Condition {
	const kind = v1.ConditionBackupHealthy
	var success *v1.BackupResult
	var failure *v1.BackupFailure
	if known := db.Status.Backup; known != nil {
		success, failure = known.LastSuccess, known.LastFailure
	}
	switch {
	case failure != nil && (success == nil || success.Time.Before(&failure.Time)):
		return no(kind, "BackupFailed", fmt.Sprintf("the Job %s: %s", failure.Job, failure.Message))
	case running.reason != "":
		return no(kind, running.reason, running.message)
	case success == nil:
		return no(kind, noBackup, "no backup has been made yet; the schedule is "+db.Spec.Backup.Schedule+" "+db.Spec.Backup.TimeZone)
	case !schedule.Outdated(success.Time.Time).After(time.Now()):
		return no(kind, "BackupOutdated", fmt.Sprintf("the last backup began at %s, which is more than two periods of the schedule ago: kubectl describe cronjob --namespace %s %s",
			success.Time.UTC().Format(time.RFC3339), db.Namespace, manifest.Backup(db)))
	}
	return yes(kind, "BackupRecent", "there is a recent backup")
}

// backUpNow makes a backup that a person asks for. The name of its Job has that of the request, so that a retry makes no other one.
func (d *databases) backUpNow(ctx context.Context, c *change, _, request string) error {
	db := c.Object
	if request == "" {
		return nil
	}
	name := manifest.BackupNow(db, request)
	switch wrong := validation.IsDNS1123Label(name); {
	case !supported(db):
		c.Event(einmal.EventWarning, "BackupRefused", "%s", engineMessage(db))
		return nil
	case disabled(db):
		c.Event(einmal.EventWarning, "BackupRefused", "spec.backupEnabled is false; set it to true, and ask again with another value of the annotation %s", backupAnnotation)
		return nil
	case len(wrong) > 0:
		c.Event(einmal.EventWarning, "BackupRefused", "the annotation %s must have at most %d lowercase letters, digits and hyphens, and end with a letter or digit: it is %.100q",
			backupAnnotation, validation.DNS1123LabelMaxLength-len(manifest.BackupNow(db, "")), request)
		return nil
	case db.Status.DataVersion == "" || db.Status.Image == "":
		return einmal.RequeueAfter(awaitDatabase)
	}
	images, err := d.images.ofBackups(ctx, c)
	if err != nil {
		return err
	}
	job := manifest.BackupRequested(db, images, request)
	job.Namespace = db.Namespace
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(db, v1.GroupVersion.WithKind("Database"))}
	err = c.Client.Create(ctx, job)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := get(ctx, c, name, &batchv1.Job{})
	if err == nil && found != nil && !metav1.IsControlledBy(found, db) {
		c.Event(einmal.EventWarning, "BackupRefused", "the Job %s exists and does not belong to this Database: ask again with another value of the annotation %s", name, backupAnnotation)
	}
	return err
}
