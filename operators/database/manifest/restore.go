package manifest

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

const (
	// restoreVolume is the volume with the backups that a new database is filled with.
	restoreVolume = "backup"
	// restoreMount is where server.sh finds them.
	restoreMount = "/backup"
	// restoreVariable is the variable of server.sh with the name of the backup that a new database is filled with.
	restoreVariable = "RESTORE"
	// locationVariable is the variable with the place of the backups, for messages.
	locationVariable = "RESTORE_FROM"
	// extensionsVariable is the variable with the names of extensions that the superuser creates in a restore.
	extensionsVariable = "EXTENSIONS"
	// RestoreLog is the file in the Pod of the first server with the errors of a restore that has left out something.
	RestoreLog = "/data/restore.log"
	// Newest is the value of RESTORE for the newest backup.
	Newest = "newest"
)

// BackupsAt returns where the backups of a Database are that a new one can begin with: the name of a claim, or the URL of a folder of a bucket.
func BackupsAt(db *v1.Database, from v1.BackupSource) string {
	if from.S3 == nil {
		return from.Database + backupSuffix
	}
	return BucketURL(*from.S3, sourceNamespace(db, from), from.Database)
}

func sourceNamespace(db *v1.Database, from v1.BackupSource) string {
	if from.Namespace != "" {
		return from.Namespace
	}
	return db.Namespace
}

// Restores returns the place and the name of the backup that a Pod fills a new database with. Both are "" for other Pods.
func Restores(pod corev1.PodSpec) (location, name string) {
	for _, container := range pod.InitContainers {
		for _, variable := range container.Env {
			switch variable.Name {
			case locationVariable:
				location = variable.Value
			case restoreVariable:
				name = variable.Value
			}
		}
	}
	return location, name
}

// RestoresOtherwise reports whether a Pod fills a new database with a backup, and another one would do that with another backup, from another place, with
// another access key or with other extensions, or not at all.
func RestoresOtherwise(pod, other corev1.PodSpec) bool {
	location, _ := Restores(pod)
	return location != "" && !equality.Semantic.DeepEqual(restoring(pod), restoring(other))
}

// restoring returns the variables of the containers of a Pod that fill a new database.
func restoring(pod corev1.PodSpec) []corev1.EnvVar {
	var found []corev1.EnvVar
	for _, container := range pod.InitContainers {
		for _, variable := range container.Env {
			if slices.Contains([]string{locationVariable, restoreVariable, extensionsVariable}, variable.Name) || container.Name == fetchName {
				found = append(found, variable)
			}
		}
	}
	return found
}

// restoreVariables returns the variables that say which backup a new database is filled with.
func restoreVariables(db *v1.Database, from *v1.BackupSource) []corev1.EnvVar {
	if from == nil {
		return nil
	}
	name := from.Name
	if name == "" {
		name = Newest
	}
	return []corev1.EnvVar{{Name: restoreVariable, Value: name}, {Name: locationVariable, Value: BackupsAt(db, *from)}}
}

// extensionVariables returns the variable that says which extensions the superuser creates in a restore.
func extensionVariables(settings Settings) []corev1.EnvVar {
	if settings.Restore == nil || len(settings.Extensions) == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: extensionsVariable, Value: strings.Join(settings.Extensions, " ")}}
}

// restoreVolumes returns the volume with the backup that a new database is filled with. One of a bucket is fetched into the volume of the database.
func restoreVolumes(from *v1.BackupSource) []corev1.Volume {
	if from == nil || from.S3 != nil {
		return nil
	}
	return []corev1.Volume{{Name: restoreVolume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
		ClaimName: from.Database + backupSuffix, ReadOnly: true,
	}}}}
}

// restoreMounts returns where the container that restores finds the backup.
func restoreMounts(from *v1.BackupSource) []corev1.VolumeMount {
	switch {
	case from == nil:
		return nil
	case from.S3 != nil:
		return []corev1.VolumeMount{{Name: dataVolume, MountPath: restoreMount, SubPath: path.Base(fetched), ReadOnly: true}}
	}
	return []corev1.VolumeMount{{Name: restoreVolume, MountPath: restoreMount, ReadOnly: true}}
}

// fetchContainers returns the container that fetches a backup from a bucket, if that is where it is.
func fetchContainers(db *v1.Database, settings Settings) []corev1.Container {
	from := settings.Restore
	if from == nil || from.S3 == nil {
		return nil
	}
	return []corev1.Container{{
		Name: fetchName, Image: settings.Images.Operator, Args: []string{FetchCommand, "--unless", engineOf(db).data, fetched},
		Env:       append(restoreVariables(db, from), bucketVariables(*from.S3, sourceNamespace(db, *from), from.Database)...),
		Resources: smallResources(), SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{{Name: dataVolume, MountPath: "/data"}},
	}}
}
