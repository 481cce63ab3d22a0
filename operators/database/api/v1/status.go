package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
)

// State summarizes the state of a database in one word.
type State string

// The states of a database.
const (
	// Provisioning: the server has not accepted connections yet.
	Provisioning State = "Provisioning"
	// Ready: the server accepts connections.
	Ready State = "Ready"
	// Degraded: the server has accepted connections before and does not now, or something is not as the spec says.
	Degraded State = "Degraded"
	// Blocked: a person has to act. The condition Ready names the remedy.
	Blocked State = "Blocked"
)

// The conditions of a database.
const (
	// ConditionReady: the primary accepts connections, and what the spec says of it is done.
	ConditionReady = "Ready"
	// ConditionAvailable: the primary accepts connections.
	ConditionAvailable = "Available"
	// ConditionProgressing: the operator or the cluster is working on what the spec says, and nothing keeps them from it.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: a database that was ready before is not ready now, a standby has lost its connection or needs a person, or a volume is almost full.
	ConditionDegraded = "Degraded"
	// ConditionStorageResizing: the volume is smaller than the spec says.
	ConditionStorageResizing = "StorageResizing"
	// ConditionStandbysStreaming: all standbys get what the primary writes.
	ConditionStandbysStreaming = "StandbysStreaming"
	// ConditionPrimaryAsRequested: the primary is the server that the spec says.
	ConditionPrimaryAsRequested = "PrimaryAsRequested"
	// ConditionBackupHealthy: the last attempt to make a backup has succeeded, and the last backup is not older than two periods of its schedule.
	ConditionBackupHealthy = "BackupHealthy"
	// ConditionEngineSupported: the operator can run this engine.
	ConditionEngineSupported = "EngineSupported"
	// ConditionParametersApplied: the server runs with the parameters of the spec.
	ConditionParametersApplied = "ParametersApplied"
	// ConditionRestoreComplete: the database has everything that the backup has which it began with. It is missing if there was no such backup.
	ConditionRestoreComplete = "RestoreComplete"
	// ConditionVersionSupported: the operator can run this version with the data of the volume.
	ConditionVersionSupported = "VersionSupported"
)

// DatabaseStatus is the observed state of a database. It contains no secrets.
type DatabaseStatus struct {
	// Records are the records of the operators that handle the database. They prevent that a handler runs twice for one change.
	einmal.Records `json:",inline"`

	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state summarizes the state of the database in one word.
	// +optional
	State State `json:"state,omitempty"`
	// engine is the database software that runs.
	// +optional
	Engine Engine `json:"engine,omitempty"`
	// version is the version of the server, or of the last one. It differs from spec.version while that version is not supported, and until the Pod is
	// replaced.
	// +optional
	Version string `json:"version,omitempty"`
	// dataVersion is the major version of the data in the volume. The operator sets it after the first start, and never lets a server create an
	// empty database again afterwards.
	// +optional
	DataVersion string `json:"dataVersion,omitempty"`
	// image is the image of the server, or of the last one.
	// +optional
	Image string `json:"image,omitempty"`
	// replicas is the number of servers that exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of servers that accept connections and, if they are standbys, get what the primary writes.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector selects the Pods of the database.
	// +optional
	Selector string `json:"selector,omitempty"`
	// endpoint is the host and the port of the server that accepts writes.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// readOnlyEndpoint is the host and the port of the standbys that get what the primary writes. It leads to none if there are none.
	// +optional
	ReadOnlyEndpoint string `json:"readOnlyEndpoint,omitempty"`
	// secretName is the Secret with the username and the password of the owner of the database.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// primary is the Pod that may accept writes. The operator changes it before it lets another Pod do so.
	// +optional
	Primary *Primary `json:"primary,omitempty"`
	// switchover is the switchover that the operator carries out, or the last one if it has failed.
	// +optional
	Switchover *Switchover `json:"switchover,omitempty"`
	// instances are the servers, in the order of their numbers.
	// +optional
	// +listType=map
	// +listMapKey=pod
	Instances []Instance `json:"instances,omitempty"`
	// backup is what is known of the backups.
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`
	// restoredFrom is the backup that the database began with: the folder of the claim.
	// +optional
	RestoredFrom string `json:"restoredFrom,omitempty"`
	// storage is the size of the volumes.
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`
	// conditions are Ready, Available, Progressing, Degraded, StandbysStreaming, PrimaryAsRequested, StorageResizing, BackupHealthy, RestoreComplete,
	// EngineSupported, VersionSupported and ParametersApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Primary is the Pod that may accept writes. A Pod that is replaced has another uid, and must be permitted again.
type Primary struct {
	// pod is the name of the Pod.
	Pod string `json:"pod"`
	// uid is the uid of the Pod.
	UID types.UID `json:"uid"`
	// term counts the Pods that were permitted to accept writes, from 1.
	Term int64 `json:"term"`
}

// Switchover makes a standby the primary, also in a failover. What the operator does next is in its phase before it happens.
type Switchover struct {
	// phase is what the operator does.
	Phase SwitchoverPhase `json:"phase"`
	// from is the Pod that was the primary before.
	From string `json:"from"`
	// to is the Pod that becomes the primary.
	To string `json:"to"`
	// uid is the uid of that Pod.
	UID types.UID `json:"uid"`
	// message says why a switchover has failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// SwitchoverPhase is what the operator does in a switchover.
type SwitchoverPhase string

// The phases of a switchover.
const (
	// SwitchoverStopping: the operator ends the server of the former primary.
	SwitchoverStopping SwitchoverPhase = "Stopping"
	// SwitchoverPromoting: the former primary has ended, and the standby has all that it has written, or a person has given up the former primary. The operator
	// promotes the standby.
	SwitchoverPromoting SwitchoverPhase = "Promoting"
	// SwitchoverFailed: the standby was not promoted, and the former primary remains the primary.
	SwitchoverFailed SwitchoverPhase = "Failed"
)

// Instance is a server of a database.
type Instance struct {
	// pod is the name of the Pod.
	Pod string `json:"pod"`
	// role is primary or standby.
	Role Role `json:"role"`
	// state is what the server does.
	State InstanceState `json:"state"`
	// lag is how much of the write-ahead log a standby has not replayed, rounded up to a power of two. It is missing below 16Mi.
	// +optional
	Lag *resource.Quantity `json:"lag,omitempty"`
}

// Role is what a server is for.
type Role string

// The roles.
const (
	RolePrimary Role = "primary"
	RoleStandby Role = "standby"
)

// InstanceState is what a server does.
type InstanceState string

// The states of a server.
const (
	// InstanceReady: the primary accepts connections.
	InstanceReady InstanceState = "Ready"
	// InstanceNotReady: the server does not accept connections.
	InstanceNotReady InstanceState = "NotReady"
	// InstanceCopying: a new standby copies the primary.
	InstanceCopying InstanceState = "Copying"
	// InstanceCatchingUp: the standby gets what it has missed.
	InstanceCatchingUp InstanceState = "CatchingUp"
	// InstanceStreaming: the standby gets what the primary writes.
	InstanceStreaming InstanceState = "Streaming"
	// InstanceDisconnected: the standby accepts connections, but gets nothing from the primary.
	InstanceDisconnected InstanceState = "Disconnected"
	// InstanceOutdated: the primary has deleted what the standby has missed. The standby is made again.
	InstanceOutdated InstanceState = "Outdated"
)

// StorageStatus is the size of the volumes.
type StorageStatus struct {
	// requested is what the claim of the primary's volume asks for.
	Requested resource.Quantity `json:"requested"`
	// actual is the size of the primary's volume. It is missing until there is one.
	// +optional
	Actual *resource.Quantity `json:"actual,omitempty"`
	// usedPercent is how full the fullest volume is. It is written when it has changed by at least 5, or has reached 90.
	// +optional
	UsedPercent *int32 `json:"usedPercent,omitempty"`
}
