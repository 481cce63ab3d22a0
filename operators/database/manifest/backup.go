package manifest

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

const (
	// BackupOfLabel is the label with the name of the Database, on what makes its backups and the claim that holds them. It is not NameLabel, which the
	// Services of the servers select.
	BackupOfLabel = "database.einmal.dev/backup-of"
	// BackupContainer is the name of the container that makes a backup. It is an init container if another one then copies the backup to a bucket.
	BackupContainer = "backup"

	// backupSeconds is the longest that a backup may take.
	backupSeconds = 12 * 60 * 60
	// missedSeconds is how late a backup may begin.
	missedSeconds = 60 * 60
	// keepSeconds is how long the Job of a backup that a person has asked for is kept.
	keepSeconds = 24 * 60 * 60
	// backupHistory is how many Jobs are kept.
	backupHistory = 3
	// backupRetries is how often a backup that has failed is tried again.
	backupRetries = 2
	// defaultCount is how many backups are kept by default.
	defaultCount = 7
)

// backupSuffix ends the name of a claim of backups.
const backupSuffix = "-backup"

// Backup returns the name of the CronJob and of the claim.
func Backup(db *v1.Database) string { return db.Name + backupSuffix }

// BackupNow returns the name of the Job for a request.
func BackupNow(db *v1.Database, request string) string { return Backup(db) + "-" + request }

// BackupSelector returns the labels of the Jobs that make the backups of a Database, and of their Pods.
func BackupSelector(db *v1.Database) map[string]string {
	return map[string]string{BackupOfLabel: db.Name}
}

// BackupClaim returns the claim whose volume holds the backups.
func BackupClaim(db *v1.Database) *corev1.PersistentVolumeClaim {
	// It has no owner, so a tool that finds its objects by a label of the database would take it for one of its own, and delete it.
	own := metav1.ObjectMeta{Name: Backup(db), Labels: BackupSelector(db)}
	return &corev1.PersistentVolumeClaim{ObjectMeta: own, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: db.Spec.Backup.Claim.StorageClassName,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: BackupStorage(db)}},
	}}
}

// TrackingLabels returns the labels of a claim of backups by which tools find the objects that they manage. Earlier operators have set them.
func TrackingLabels(db *v1.Database, claim *corev1.PersistentVolumeClaim) []string {
	var found []string
	for key, value := range backupLabels(db) {
		if einmal.IsTrackingLabel(key) && claim.Labels[key] == value {
			found = append(found, key)
		}
	}
	return found
}

// BackupStorage returns the size of the volume of the backups.
func BackupStorage(db *v1.Database) resource.Quantity {
	if size := db.Spec.Backup.Claim.Storage; size != nil {
		return *size
	}
	return db.Spec.Storage
}

// BackupSchedule makes a backup on the schedule. A schedule is never run twice at the same time.
func BackupSchedule(db *v1.Database, images Images) *batchv1.CronJob {
	history, late := int32(backupHistory), int64(missedSeconds)
	return &batchv1.CronJob{ObjectMeta: backupMeta(db, Backup(db)), Spec: batchv1.CronJobSpec{
		Schedule: db.Spec.Backup.Schedule, TimeZone: &db.Spec.Backup.TimeZone,
		ConcurrencyPolicy: batchv1.ForbidConcurrent, StartingDeadlineSeconds: &late,
		SuccessfulJobsHistoryLimit: &history, FailedJobsHistoryLimit: &history,
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: backupLabels(db)}, Spec: backupJob(db, images)},
	}}
}

// BackupRequested makes a backup now, for a person.
func BackupRequested(db *v1.Database, images Images, request string) *batchv1.Job {
	keep := int32(keepSeconds)
	job := &batchv1.Job{ObjectMeta: backupMeta(db, BackupNow(db, request)), Spec: backupJob(db, images)}
	job.Spec.TTLSecondsAfterFinished = &keep
	return job
}

func backupLabels(db *v1.Database) map[string]string {
	all := labels(db)
	delete(all, NameLabel)
	all[BackupOfLabel] = db.Name
	return all
}

func backupMeta(db *v1.Database, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: backupLabels(db)}
}

func backupJob(db *v1.Database, images Images) batchv1.JobSpec {
	no, retries, longest := false, int32(backupRetries), int64(backupSeconds)
	first, last, failing := []corev1.Container(nil), backupContainer(db, images.Server), (*batchv1.PodFailurePolicy)(nil)
	if db.Spec.Backup.S3 != nil {
		first, last, failing = []corev1.Container{last}, uploadContainer(db, images.Operator), uploadFailure()
	}
	return batchv1.JobSpec{BackoffLimit: &retries, ActiveDeadlineSeconds: &longest, PodFailurePolicy: failing, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: backupLabels(db)},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			ImagePullSecrets: db.Spec.ImagePullSecrets,
			SecurityContext:  podSecurity(),
			InitContainers:   first,
			Containers:       []corev1.Container{last},
			Volumes: []corev1.Volume{
				configuration(db),
				{Name: "backups", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Backup(db)}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}}
}

func backupContainer(db *v1.Database, image string) corev1.Container {
	of := engineOf(db)
	return corev1.Container{
		Name: BackupContainer, Image: image, Command: []string{"/bin/sh", "/config/backup.sh"},
		Env: slices.Concat(keep(db.Spec.Backup.Retention), sources(db), of.backup(db), []corev1.EnvVar{
			{Name: of.password, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: BackupSecret(db)}, Key: corev1.BasicAuthPasswordKey,
			}}},
		}),
		Resources:       smallResources(),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/config", ReadOnly: true}, {Name: "backups", MountPath: "/backups"}, {Name: "tmp", MountPath: "/tmp"},
		},
	}
}

// sources returns the variables with the servers that a backup can be made of.
func sources(db *v1.Database) []corev1.EnvVar {
	all := []corev1.EnvVar{{Name: "PRIMARY", Value: ReadWriteService(db)}}
	if HasStandbys(db) {
		all = append(all, corev1.EnvVar{Name: "STANDBYS", Value: ReadOnlyService(db)})
	}
	return all
}

// smallResources returns the resources of a container that makes, copies or fetches a backup.
func smallResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// keep returns the variables that say which backups are kept.
func keep(retention *v1.Retention) []corev1.EnvVar {
	switch {
	case retention != nil && retention.Days != nil:
		return []corev1.EnvVar{{Name: "KEEP_DAYS", Value: strconv.Itoa(int(*retention.Days))}}
	case retention != nil && retention.Count != nil:
		return []corev1.EnvVar{{Name: "KEEP_COUNT", Value: strconv.Itoa(int(*retention.Count))}}
	}
	return []corev1.EnvVar{{Name: "KEEP_COUNT", Value: strconv.Itoa(defaultCount)}}
}
