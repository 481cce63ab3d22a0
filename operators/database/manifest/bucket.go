package manifest

import (
	"path"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Commands of the operator's program, which its image runs in the Pods of backups and of new databases.
const (
	// UploadCommand copies the backups of a volume to a bucket.
	UploadCommand = "upload-backups"
	// FetchCommand fetches a backup from a bucket.
	FetchCommand = "fetch-backup"
)

// Names of the containers with the image of the operator.
const (
	uploadName = "upload"
	fetchName  = "fetch"
)

// UploadFailed is the exit code of UploadCommand if backups could not be copied.
const UploadFailed = 1

// Keys of the Secret of a bucket.
const (
	accessKey = "AWS_ACCESS_KEY_ID"
	secretKey = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // The name of a key.
	authority = "ca.crt"
)

// Variables with a bucket and a folder of it.
const (
	bucketVariable = "S3_BUCKET"
	prefixVariable = "S3_PREFIX"
)

// fetched is the folder of the volume of a database that a backup is fetched into.
const fetched = "/data/fetched"

// BucketPrefix returns the folder of a bucket with the backups of a Database.
func BucketPrefix(bucket v1.Bucket, namespace, name string) string {
	return path.Join(bucket.Prefix, namespace, name)
}

const bucketScheme = "s3://"

// InBucket reports whether a location is in a bucket, not in a claim.
func InBucket(location string) bool { return strings.HasPrefix(location, bucketScheme) }

// BucketURL returns the URL of that folder.
func BucketURL(bucket v1.Bucket, namespace, name string) string {
	return bucketScheme + bucket.Bucket + "/" + BucketPrefix(bucket, namespace, name)
}

// BackupLocation returns where the backup of a Job is: in a folder of a bucket, or in its claim. The Database can have another bucket than the Job by now.
func BackupLocation(job *batchv1.Job, claim string) string {
	for _, container := range job.Spec.Template.Spec.Containers {
		if container.Name != uploadName {
			continue
		}
		found := map[string]string{}
		for _, variable := range container.Env {
			found[variable.Name] = variable.Value
		}
		return bucketScheme + found[bucketVariable] + "/" + found[prefixVariable]
	}
	return claim
}

// bucketVariables returns the variables with a folder of a bucket and its access key.
func bucketVariables(bucket v1.Bucket, namespace, name string) []corev1.EnvVar {
	secret := func(variable, key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: bucket.SecretName}, Key: key, Optional: &optional,
		}}}
	}
	return []corev1.EnvVar{
		{Name: "S3_ENDPOINT", Value: bucket.Endpoint},
		{Name: "S3_REGION", Value: bucket.Region},
		{Name: bucketVariable, Value: bucket.Bucket},
		{Name: prefixVariable, Value: BucketPrefix(bucket, namespace, name)},
		secret("S3_ACCESS_KEY", accessKey, false), secret("S3_SECRET_KEY", secretKey, false), secret("S3_AUTHORITY", authority, true),
	}
}

// RunsOperator reports whether a container has the image of the operator.
func RunsOperator(container string) bool { return container == uploadName || container == fetchName }

// uploadContainer copies the backups of the volume to the bucket, after one was made.
func uploadContainer(db *v1.Database, image string) corev1.Container {
	s3 := *db.Spec.Backup.S3
	retention := s3.Retention
	if retention == nil {
		retention = db.Spec.Backup.Retention
	}
	return corev1.Container{
		Name: uploadName, Image: image, Args: []string{UploadCommand, "/backups"},
		Env:             append(keep(retention), bucketVariables(s3.Bucket, db.Namespace, db.Name)...),
		Resources:       smallResources(),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "backups", MountPath: "/backups"}},
	}
}

// uploadFailure ends a Job whose backup was made and could not be copied. The container has tried that again by itself, and another Pod would make another
// backup, until the volume had none from before the storage failed.
func uploadFailure() *batchv1.PodFailurePolicy {
	name := uploadName
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: &name, Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{UploadFailed},
		},
	}}}
}
