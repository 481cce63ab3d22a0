// Package manifest makes the objects of a Database: what the operator applies, as a pure function of the spec.
package manifest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Labels and annotations. They never change: objects of earlier releases have them.
const (
	// NameLabel is the label with the name of the Database, on its Pods and claims.
	NameLabel = "database.einmal.dev/name"
	// RoleLabel is the label of the Pods that the Services select.
	RoleLabel = "database.einmal.dev/role"
	// RolePrimary is the value of RoleLabel of the Pod that the read-write Service selects.
	RolePrimary = "primary"
	// RoleStandby is the value of RoleLabel of the Pods that the read-only Service selects: standbys that have what the primary has.
	RoleStandby = "standby"
	// GrantAnnotation is the annotation of a Pod that permits it to accept writes, or to be a standby. Its value is the text of a grant: see package primary.
	GrantAnnotation = "database.einmal.dev/grant"
	// DataAnnotation is the annotation of a claim whose volume holds a database. Its value is the major version, or DataCreating.
	DataAnnotation = "database.einmal.dev/data-version"
	// TermAnnotation is the annotation of a claim whose server was permitted to accept writes. Its value is the last term of that server.
	TermAnnotation = "database.einmal.dev/term"
	// KeepFinalizer is the finalizer of the Pod of a primary that a switchover stops. It keeps the object until the operator has read the termination
	// message of the server.
	KeepFinalizer = "database.einmal.dev/switchover"
	// VersionAnnotation is the annotation of a StatefulSet's template, and so of its Pods, with the version of the server.
	VersionAnnotation = "database.einmal.dev/version"
	// DataCreating is the value of DataAnnotation from the time when the operator lets a server create the database.
	DataCreating = "creating"
)

// Images are the images of the containers of a Database.
type Images struct {
	// Server is the image of the servers.
	Server string
	// Operator is the image of the operator, whose program copies backups to a bucket and fetches them. It is "" if that is not needed.
	Operator string
}

// Settings are what the objects depend on besides the spec.
type Settings struct {
	// Images are the images of the containers.
	Images Images
	// Version is the version of the servers, and Major its major version.
	Version, Major string
	// Replicas is the number of servers.
	Replicas int32
	// Parameters are the lines of the configuration file that set the parameters of the spec.
	Parameters string
	// Restore is the backup that the new database is filled with, or nil if it exists already or begins empty.
	Restore *v1.BackupSource
	// Extensions are the extensions of PostgreSQL that the superuser creates in a restore. All others must be trusted.
	Extensions []string
	// Template is the size in the claim template of the StatefulSet, which cannot be changed.
	Template resource.Quantity
}

// Names of the objects of a Database. The suffixes contain no further hyphen, so the objects of two Databases never have the same name.

// ReadWriteService returns the name of the Service that selects the primary.
func ReadWriteService(db *v1.Database) string { return db.Name + "-rw" }

// ReadOnlyService returns the name of the Service that selects standbys.
func ReadOnlyService(db *v1.Database) string { return db.Name + "-ro" }

// PodService returns the name of the headless Service of the Pods.
func PodService(db *v1.Database) string { return db.Name + "-pods" }

// AppSecret returns the name of the Secret for apps.
func AppSecret(db *v1.Database) string { return db.Name + "-app" }

// MonitorSecret returns the name of the Secret with which the operator logs in.
func MonitorSecret(db *v1.Database) string { return db.Name + "-monitor" }

// Monitor is the user that the operator logs in as. It can read how full the volume is and how the standbys are, and drop slots of standbys.
const Monitor = "einmal_monitor"

// ReplicationSecret returns the name of the Secret with which standbys log in to the primary.
func ReplicationSecret(db *v1.Database) string { return db.Name + "-replication" }

// Replication is the user that standbys log in as.
const Replication = "einmal_replication"

// BackupSecret returns the name of the Secret with which backups are made.
func BackupSecret(db *v1.Database) string { return db.Name + backupSuffix }

// BackupUser is the user that makes backups. It can read everything.
const BackupUser = "einmal_backup"

// Secrets returns the names of the Secrets with the passwords of a Database.
func Secrets(db *v1.Database) []string {
	all := []string{AppSecret(db), MonitorSecret(db), BackupSecret(db)}
	if HasStandbys(db) {
		all = append(all, ReplicationSecret(db))
	}
	return all
}

// MostReplicas is how many servers a Database can have.
const MostReplicas = 5

// Config returns the name of the ConfigMap.
func Config(db *v1.Database) string { return db.Name + "-config" }

// Pod returns the name of the Pod with an ordinal. The first Pod, with the ordinal 0, creates the database and is the first primary.
func Pod(db *v1.Database, ordinal int) string { return fmt.Sprintf("%s-%d", db.Name, ordinal) }

// Ordinal returns the ordinal of a Pod of the Database.
func Ordinal(db *v1.Database, pod string) int {
	for ordinal := range MostReplicas {
		if Pod(db, ordinal) == pod {
			return ordinal
		}
	}
	return 0
}

// Claim returns the name of the claim of a Pod.
func Claim(pod string) string { return dataVolume + "-" + pod }

// Slot returns the name of the replication slot of a standby.
func Slot(ordinal int) string { return fmt.Sprintf("einmal_%d", ordinal) }

// Selector returns the labels that the Pods and claims of a Database have.
func Selector(db *v1.Database) map[string]string { return map[string]string{NameLabel: db.Name} }

// Children returns the objects of a Database, in the order in which they are needed.
func Children(db *v1.Database, settings Settings) []client.Object {
	all := []client.Object{configMap(db, settings), podService(db), service(db, ReadWriteService(db), RolePrimary)}
	if HasStandbys(db) {
		all = append(all, service(db, ReadOnlyService(db), RoleStandby))
	}
	return append(all, networkPolicy(db), disruptionBudget(db), statefulSet(db, settings))
}

// labels returns the labels of all objects.
func labels(db *v1.Database) map[string]string {
	return map[string]string{
		NameLabel:                      db.Name,
		"app.kubernetes.io/name":       string(db.Spec.Engine),
		"app.kubernetes.io/instance":   db.Name,
		"app.kubernetes.io/managed-by": "databases.einmal.dev",
	}
}

func meta(db *v1.Database, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: labels(db)}
}

// podService gives each Pod a name in DNS, also while it is not ready.
func podService(db *v1.Database) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(db, PodService(db)), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: Selector(db), Ports: ports(db),
	}}
}

// service leads to the Pods with a role.
func service(db *v1.Database, name, role string) *corev1.Service {
	selector := Selector(db)
	selector[RoleLabel] = role
	return &corev1.Service{ObjectMeta: meta(db, name), Spec: corev1.ServiceSpec{Selector: selector, Ports: ports(db)}}
}

// disruptionBudget lets one server at a time be evicted, as when nodes are drained.
func disruptionBudget(db *v1.Database) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{ObjectMeta: meta(db, db.Name), Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: Selector(db)},
	}}
}

func ports(db *v1.Database) []corev1.ServicePort {
	name := Container(db)
	return []corev1.ServicePort{{Name: name, Port: Port(db), TargetPort: intstr.FromString(name), Protocol: corev1.ProtocolTCP}}
}

// networkPolicy lets clients reach only the port of the server. What the server may reach is not limited: foreign data wrappers need that.
func networkPolicy(db *v1.Database) *networkingv1.NetworkPolicy {
	protocol, port := corev1.ProtocolTCP, intstr.FromInt32(Port(db))
	return &networkingv1.NetworkPolicy{ObjectMeta: meta(db, db.Name), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: Selector(db)},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &port}}}},
	}}
}

// statefulSet runs the servers. All start at once, and standbys wait for the primary. A changed template restarts nothing: with OnDelete, a Pod gets it when it is replaced.
func statefulSet(db *v1.Database, settings Settings) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta(db, db.Name), Spec: appsv1.StatefulSetSpec{
		Replicas:            &settings.Replicas,
		ServiceName:         PodService(db),
		Selector:            &metav1.LabelSelector{MatchLabels: Selector(db)},
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels(db), Annotations: map[string]string{
				"kubectl.kubernetes.io/default-container": Container(db), VersionAnnotation: settings.Version,
			}},
			Spec: podSpec(db, settings),
		},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: dataVolume, Labels: Selector(db)},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: db.Spec.StorageClassName,
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: settings.Template},
				},
			},
		}},
	}}
}
