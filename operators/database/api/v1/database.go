// Package v1 is the API of the database operator: the kind Database.
//
// +kubebuilder:object:generate=true
// +groupName=database.einmal.dev
package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Database is a database server with a volume and a password, for the apps of its namespace and others.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=db
// +kubebuilder:printcolumn:name=Engine,type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name=Version,type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name=Endpoint,type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name=Backup,type=date,priority=1,JSONPath=`.status.backup.lastSuccess.time`
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$')",message="metadata.name must be at most 45 lowercase letters, digits and hyphens, and start with a letter: Services and Pods are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",fieldPath=".spec",reason=FieldValueRequired,message="required: set at least spec.engine, spec.version and spec.storage"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(oldSelf.spec) || self.spec.version == oldSelf.spec.version || !self.spec.version.matches('^[1-9][0-9]?([.][0-9]{1,3}){0,2}$') || !has(self.status) || !has(self.status.dataVersion) || int(self.spec.version.split('.')[0]) >= int(self.status.dataVersion.split('.')[0])",fieldPath=".spec.version",messageExpression="'the major version cannot be lowered: an older server cannot read the data of version ' + self.status.dataVersion",message="the major version cannot be lowered"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(oldSelf.spec) || !isQuantity(string(self.spec.storage)) || quantity(string(self.spec.storage)).compareTo(quantity(string(oldSelf.spec.storage))) >= 0 || has(self.status) && has(self.status.storage) && quantity(string(self.spec.storage)).compareTo(quantity(string(self.status.storage.requested))) >= 0",fieldPath=".spec.storage",messageExpression="'can grow but not shrink: a volume does not give back space, and this one has ' + (has(self.status) && has(self.status.storage) ? string(self.status.storage.requested) : string(oldSelf.spec.storage))",message="can grow but not shrink: a volume does not give back space"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the database.
	// +optional
	Spec DatabaseSpec `json:"spec,omitempty"`
	// status is the observed state of the database.
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is the desired state of a database.
//
// +kubebuilder:validation:XValidation:rule="self.engine != 'mariadb' || !has(self.replicas) || self.replicas == 1",fieldPath=".replicas",message="must be 1 with engine mariadb: only postgresql has standbys"
// +kubebuilder:validation:XValidation:rule="self.engine != 'mariadb' || !has(self.auth) || !has(self.auth.database) || !(self.auth.database in ['mysql', 'sys', 'information_schema', 'performance_schema', 'einmal'])",fieldPath=".auth.database",message="must not be a name that MariaDB or the operator reserves: mysql, sys, information_schema, performance_schema, einmal"
// +kubebuilder:validation:XValidation:rule="self.engine != 'mariadb' || !has(self.auth) || !has(self.auth.username) || !(self.auth.username in ['root', 'mysql'])",fieldPath=".auth.username",message="must not be a name that MariaDB reserves: root, mysql"
// +kubebuilder:validation:XValidation:rule="!has(self.primary) || self.primary < self.replicas",fieldPath=".primary",message="must be below spec.replicas: servers have the numbers from 0"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="immutable: the class of a volume is chosen when the volume is created"
type DatabaseSpec struct {
	// engine is the database software: postgresql or mariadb. It is immutable. The operator does not run mysql: it sets the condition EngineSupported=False.
	// +kubebuilder:validation:Enum=postgresql;mysql;mariadb
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: the data of one engine cannot be read by another; create another Database"
	Engine Engine `json:"engine"`

	// version is the version of the engine, for example "16" or "16.4" for postgresql, and "10.11" for mariadb. Quote it, because YAML reads 16.10 as the
	// number 16.1. The major version cannot be lower than that of the data. The condition VersionSupported lists the supported major versions. A change of the minor version restarts the server.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]?([.][0-9]{1,3}){0,2}$')",message="must be a version such as \"16\" or \"16.4\""
	Version string `json:"version"`

	// storage is the size of the volume, from 300Mi to 64Ti, for example 100Gi. It can grow but not shrink. A raise that
	// the condition StorageResizing reports as refused can be taken back.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="must be a number with a unit, for example 10Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('300Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Ti')) <= 0",message="must be from 300Mi to 64Ti"
	Storage resource.Quantity `json:"storage"`

	// storageClassName is the storage class of the volume. The default is the default class of the cluster. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// replicas is the number of servers, from 1 to 5: one primary, which accepts writes, and standbys, which copy it and serve reads. The volumes of
	// standbys stay when the number is lowered. With engine mariadb, it must be 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas int32 `json:"replicas,omitempty"`

	// primary is the number of the server that is to accept writes, from 0: with 1, it is the Pod NAME-1. If it is a standby that gets what the primary
	// writes, the operator stops the primary, and promotes the standby when it has everything. The condition PrimaryAsRequested says what prevents that.
	// Without the field, another version or image makes a standby the primary.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4
	Primary *int32 `json:"primary,omitempty"`

	// backupEnabled makes backups on a schedule. The condition BackupHealthy says whether there is a recent one. With false, no backups are made, and those
	// that exist stay.
	// +optional
	// +kubebuilder:default=true
	BackupEnabled *bool `json:"backupEnabled,omitempty"`

	// backup says when backups are made, how many are kept, and where.
	// +optional
	// +kubebuilder:default={}
	Backup Backup `json:"backup,omitempty"`

	// bootstrap says what a new database begins with. Without it, it is empty. It has no effect on a database that exists.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// auth names the database that apps use and its owner.
	// +optional
	// +kubebuilder:default={}
	Auth Auth `json:"auth,omitempty"`

	// image is the container image of the server. The default depends on the version, and is set by the operator's flags --image and --mariadb-image. The
	// image needs the programs of the engine and flock in its PATH, a shell, and a user with the ID 999, whose name for mariadb is mysql. Another image
	// restarts the server.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullSecrets names Secrets with the credentials of the image's registry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// parameters sets parameters of the server, for example work_mem: 64MB. Quote numbers, and words such as "on". Names, values and units are those of
	// the manual of the engine; not all parameters can be set. The operator restarts the server if a changed parameter needs that, which each one of
	// MariaDB does. The condition
	// ParametersApplied says what is wrong with them: until that is mended, the server keeps those that it has.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Parameter `json:"parameters,omitempty"`

	// deletionPolicy sets what happens to the volumes, the backups and the passwords when the Database is deleted. Retain keeps them, and a Database of the
	// same name takes them up again. Delete deletes them, with all data.
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// resources are the resources of the server. The default requests 100m of CPU and 256Mi of memory, and limits memory to 1Gi. They take effect
	// when the Pod is replaced.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// Resources are requests and limits, as in a container.
type Resources struct {
	// requests are the resources that the scheduler reserves.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are the resources that the server cannot exceed.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// Parameter is the value of a parameter of the server.
//
// +kubebuilder:validation:MaxLength=64
type Parameter string

// Engine is a kind of database software.
type Engine string

// The engines.
const (
	PostgreSQL Engine = "postgresql"
	MySQL      Engine = "mysql"
	MariaDB    Engine = "mariadb"
)

// DeletionPolicy sets what happens to the volumes, the backups and the passwords when the Database is deleted.
type DeletionPolicy string

// The policies.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
)

// Auth names the database that apps use and its owner.
type Auth struct {
	// database is the name of the database. It is immutable.
	// +optional
	// +kubebuilder:default=app
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_][a-z0-9_]*$') && !self.startsWith('pg_') && !(self in ['postgres', 'template0', 'template1', 'replication'])",message="must consist of lowercase letters, digits and underscores, start with a letter or underscore, and not be a name that PostgreSQL reserves"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: the database is created once; rename it with SQL if you must, and create another Database to change this field"
	Database string `json:"database,omitempty"`
	// username is the owner of the database. It is immutable.
	// +optional
	// +kubebuilder:default=app
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_][a-z0-9_]*$') && !self.startsWith('pg_') && !(self in ['postgres', 'public', 'none', 'replication', 'einmal_monitor', 'einmal_replication', 'einmal_backup'])",message="must consist of lowercase letters, digits and underscores, start with a letter or underscore, and not be a name that PostgreSQL or the operator reserves"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: the user is created once, with the database"
	Username string `json:"username,omitempty"`
}

// DatabaseList is a list of databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}
