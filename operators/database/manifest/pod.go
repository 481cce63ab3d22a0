package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

const (
	dataVolume = "data"
	// user is the ID of the user of the server in the official images.
	user = 999
	// stopSeconds is the time in which a server writes what it has in memory.
	stopSeconds = 180
	// startSeconds is the time in which a server recovers after a crash.
	startSeconds = 3600
)

// podSpec returns the Pod of the server. The init container creates the database or checks the one that the volume holds.
func podSpec(db *v1.Database, settings Settings) corev1.PodSpec {
	no, yes, stop := false, true, int64(stopSeconds)
	return corev1.PodSpec{
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		TerminationGracePeriodSeconds: &stop,
		// The first process of a namespace ignores signals that it does not handle yet. The kubelet sends SIGTERM only once, which can be a moment after the
		// start of a container, and the Pod would stay until stopSeconds are over. See decision 35.
		ShareProcessNamespace: &yes,
		ImagePullSecrets:      db.Spec.ImagePullSecrets,
		SecurityContext:       podSecurity(),
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: Selector(db)},
		}},
		InitContainers: append(fetchContainers(db, settings), initContainer(db, settings)),
		Containers:     []corev1.Container{serverContainer(db, settings)},
		Volumes:        append(volumes(db), restoreVolumes(settings.Restore)...),
	}
}

// podSecurity complies with the Pod Security Standard restricted, with containerSecurity.
func podSecurity() *corev1.PodSecurityContext {
	id, yes, onRootMismatch := int64(user), true, corev1.FSGroupChangeOnRootMismatch
	return &corev1.PodSecurityContext{
		RunAsUser: &id, RunAsGroup: &id, RunAsNonRoot: &yes, FSGroup: &id,
		// The default lets the group write to the files of the server, which then refuses to start.
		FSGroupChangePolicy: &onRootMismatch,
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func containerSecurity() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		ReadOnlyRootFilesystem: &yes, AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// initContainer also sees the passwords for a new database.
func initContainer(db *v1.Database, settings Settings) corev1.Container {
	init := container(db, settings, "data", "/config")
	init.Name = "data"
	init.Env = append(init.Env, extensionVariables(settings)...)
	init.VolumeMounts = append(init.VolumeMounts, corev1.VolumeMount{Name: "secret", MountPath: "/secret", ReadOnly: true})
	init.VolumeMounts = append(init.VolumeMounts, restoreMounts(settings.Restore)...)
	return init
}

func serverContainer(db *v1.Database, settings Settings) corev1.Container {
	of := engineOf(db)
	server := container(db, settings, "server", of.run+"/scripts") // The init container copies them there.
	server.Name = Container(db)
	if of.standbys {
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: "replication", MountPath: "/secret", ReadOnly: true})
	}
	server.Ports = []corev1.ContainerPort{{Name: server.Name, ContainerPort: of.port, Protocol: corev1.ProtocolTCP}}
	server.StartupProbe = probe(1, startSeconds, 5, of.ready)
	server.ReadinessProbe = probe(2, 3, 10, of.ready)
	server.LivenessProbe = probe(10, 6, 30, of.alive)
	return server
}

// probe returns a probe that starts a command in the container. On a busy node, that alone can take many seconds, and does not mean that the server hangs. So
// a server is killed only after six failures in a row, each of which takes 30 seconds if the command does not end.
func probe(period, failures, timeout int32, command []string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
		PeriodSeconds: period, TimeoutSeconds: timeout, FailureThreshold: failures,
	}
}

// container returns what both containers have. The argument scripts is the folder of the script that it runs.
func container(db *v1.Database, settings Settings, mode, scripts string) corev1.Container {
	of := engineOf(db)
	variables := append([]corev1.EnvVar{
		{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "PRIMARY", Value: ReadWriteService(db)},
		{Name: "MAJOR", Value: settings.Major},
	}, slices.Concat(appVariables(db), of.server)...)
	return corev1.Container{
		Image:           settings.Images.Server,
		Command:         []string{"/bin/sh", scripts + "/server.sh", mode},
		Env:             append(variables, restoreVariables(db, settings.Restore)...),
		Resources:       Resources(db),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: dataVolume, MountPath: "/data"},
			{Name: "config", MountPath: "/config", ReadOnly: true},
			{Name: "pod", MountPath: "/pod", ReadOnly: true},
			{Name: "run", MountPath: of.run},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "shm", MountPath: "/dev/shm"},
		},
	}
}

// Resources returns the resources of a server.
func Resources(db *v1.Database) corev1.ResourceRequirements {
	if of := db.Spec.Resources; of != nil {
		return corev1.ResourceRequirements{Requests: of.Requests, Limits: of.Limits}
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// password returns the file with the password of a Secret. It is optional: only a new database or a standby needs it.
func password(secret, file string) corev1.VolumeProjection {
	yes := true
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Optional: &yes,
		Items: []corev1.KeyToPath{{Key: corev1.BasicAuthPasswordKey, Path: file}},
	}}
}

// passwords returns a volume with passwords.
func passwords(name string, files ...corev1.VolumeProjection) corev1.Volume {
	readable := int32(0o440)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &readable, Sources: files}}}
}

// configuration returns the volume with the scripts and the configuration.
func configuration(db *v1.Database) corev1.Volume {
	return corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: Config(db)},
	}}}
}

// volumes returns the volumes besides that of the claim.
func volumes(db *v1.Database) []corev1.Volume {
	small := resource.MustParse("16Mi")
	memory := func(size *resource.Quantity) *corev1.EmptyDirVolumeSource {
		return &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size}
	}
	return append(append([]corev1.Volume{configuration(db)}, secretVolumes(db)...), []corev1.Volume{
		{Name: "pod", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
		}}}},
		{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: memory(&small)}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: memory(sharedMemory(db))}},
	}...)
}

// sharedMemory returns the size of the folder in which the processes of PostgreSQL that work on one query share memory: half of the memory of the server. A query
// that needs more fails, and the server is not killed for it. It is nil, which stands for half of the memory of the node, if the server has no limit.
func sharedMemory(db *v1.Database) *resource.Quantity {
	limit, limited := Resources(db).Limits[corev1.ResourceMemory]
	if !limited {
		return nil
	}
	return resource.NewQuantity(limit.Value()/2, resource.BinarySI)
}

// secretVolumes returns the volumes with the passwords for a new database, and with the one that a standby needs.
func secretVolumes(db *v1.Database) []corev1.Volume {
	app, monitor, backup := password(AppSecret(db), "app"), password(MonitorSecret(db), "monitor"), password(BackupSecret(db), "backup")
	if !HasStandbys(db) {
		return []corev1.Volume{passwords("secret", app, monitor, backup)}
	}
	replication := password(ReplicationSecret(db), "replication")
	return []corev1.Volume{passwords("secret", app, monitor, replication, backup), passwords("replication", replication)}
}
