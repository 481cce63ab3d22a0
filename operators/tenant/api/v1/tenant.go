package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
)

// Tenant describes a tenant whose apps use shared systems. The operator gives each app a login to the tenant's database, a cache user, and
// credentials, each of which is generated once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tn
// +kubebuilder:printcolumn:name=Plan,type=string,JSONPath=`.status.plan`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=DB,type=boolean,JSONPath=`.status.dbReady`
// +kubebuilder:printcolumn:name=Redis,type=boolean,JSONPath=`.status.redisReady`
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be at most 63 lowercase letters, digits and hyphens: roles, users and keys are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",fieldPath=".spec",reason=FieldValueRequired,message="required: set at least spec.backendRef.name and spec.apps"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the tenant.
	// +optional
	Spec TenantSpec `json:"spec,omitempty"`
	// status is the observed state of the tenant.
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec is the desired state of a tenant.
type TenantSpec struct {
	// plan selects the limits of the tenant; the limits are set in the TenantBackend. It can change at any time, and a change does not
	// affect credentials.
	// +optional
	// +kubebuilder:default=standard
	// +kubebuilder:validation:Enum=standard;premium
	Plan Plan `json:"plan,omitempty"`

	// backendRef names the TenantBackend of the tenant. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: databases, users and credentials are not moved; create another Tenant"
	BackendRef BackendRef `json:"backendRef"`

	// apps lists the apps of the tenant. Each app has its own credentials. If an app is removed from the list, deletionPolicy applies to
	// what it has.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Apps []App `json:"apps,omitempty"`

	// credentials sets how credentials are rotated and verified.
	// +optional
	// +kubebuilder:default={}
	Credentials Credentials `json:"credentials,omitempty"`

	// driftPolicy sets what happens if the database or the cache does not accept the stored password. Enforce sets the stored password
	// again. Report only reports the difference in the condition InSync.
	// +optional
	// +kubebuilder:default=Enforce
	// +kubebuilder:validation:Enum=Enforce;Report
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// missingCredentialPolicy sets what happens if a user exists but its credential is lost. Fail waits for a person. Rotate generates a
	// new credential; PostgreSQL and Redis then accept the lost password for another overlap, ElastiCache rejects it at once.
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:Enum=Fail;Rotate
	MissingCredentialPolicy MissingCredentialPolicy `json:"missingCredentialPolicy,omitempty"`

	// adoptionPolicy sets what happens if a role or user with the expected name exists without an ownership mark. Refuse does not change
	// it. Adopt takes it over. A role or user with the mark of another owner is never taken over.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Adopt
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// deletionPolicy sets what happens to the tenant's resources when the Tenant is deleted. Retain keeps all of them, and a Tenant of the
	// same name uses them again. Delete removes users and credentials, and fails if that would lose data.
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// dropOwned allows deletionPolicy Delete to drop the database with all its contents.
	// +optional
	DropOwned bool `json:"dropOwned,omitempty"`

	// suspend stops the operator from checking or changing anything of this tenant. Deletion still works.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Plan is the name of a set of limits.
type Plan string

// The plans.
const (
	Standard Plan = "standard"
	Premium  Plan = "premium"
)

// BackendRef names a TenantBackend.
type BackendRef struct {
	// name is the name of the TenantBackend.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// App is an app of a tenant.
type App struct {
	// name becomes part of the names of roles and users.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must consist of lowercase letters, digits and hyphens, and start and end with a letter or digit, for example web"
	Name string `json:"name"`
	// database sets the access of the app to the tenant's database.
	// +optional
	// +kubebuilder:default={}
	Database Database `json:"database,omitempty"`
	// cache sets the access of the app to the cache.
	// +optional
	// +kubebuilder:default={}
	Cache Cache `json:"cache,omitempty"`
}

// Database is the access of an app to the tenant's database.
type Database struct {
	// enabled sets whether the app has a login.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// access sets the rights of the login. owner creates and changes tables; readWrite and readOnly use existing tables.
	// +optional
	// +kubebuilder:default=owner
	// +kubebuilder:validation:Enum=owner;readWrite;readOnly
	Access Access `json:"access,omitempty"`
	// connectionLimit is the maximum number of connections of the app. It overrides the plan. -1 means unlimited.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:validation:XValidation:rule="self != 0",message="must be at least 1, or -1 for unlimited: 0 would prevent every connection"
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`
}

// Access is the set of rights of a login or a cache user.
type Access string

// What a login may do.
const (
	AccessOwner     Access = "owner"
	AccessReadWrite Access = "readWrite"
	AccessReadOnly  Access = "readOnly"
)

// Cache is the access of an app to the cache.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scripting) || self.scripting != 'Allowed' || !has(self.profile) || self.profile != 'readOnly'",fieldPath=".scripting",message="must not be Allowed with the profile readOnly, which cannot run scripts"
type Cache struct {
	// enabled sets whether the app has a cache user.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// keyPrefix is the prefix of the app's keys, after the tenant's name and a colon. Without it, the app can use all keys of the tenant.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9:._/-]*$')",message="must consist of letters, digits and : . _ / - (a pattern would give access to keys of others)"
	KeyPrefix string `json:"keyPrefix,omitempty"`
	// profile sets the rights of the user on its keys.
	// +optional
	// +kubebuilder:default=readWrite
	// +kubebuilder:validation:Enum=readWrite;readOnly
	Profile Access `json:"profile,omitempty"`
	// scripting sets whether the user may run scripts and functions. A script that does not end blocks the cache for all tenants.
	// +optional
	// +kubebuilder:default=Denied
	// +kubebuilder:validation:Enum=Allowed;Denied
	Scripting Scripting `json:"scripting,omitempty"`
}

// Scripting sets whether a cache user may run scripts and functions.
type Scripting string

// The values of Scripting.
const (
	ScriptingAllowed Scripting = "Allowed"
	ScriptingDenied  Scripting = "Denied"
)

// Credentials sets how credentials are rotated and verified.
type Credentials struct {
	// rotation requests a new credential for each app.
	// +optional
	// +kubebuilder:default={}
	Rotation Rotation `json:"rotation,omitempty"`
	// probeInterval is how often the operator checks that the credentials are accepted, from 10s to 24h.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="must be a duration from 10s to 24h, for example 10m"
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
}

// Rotation requests a new credential.
type Rotation struct {
	// requestId is any text that was not used before, for example a date. Each new value triggers one rotation. It is not secret.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RequestID string `json:"requestId,omitempty"`
	// strategy sets what happens to the old credential. With Overlap it is accepted until the overlap ends. With InPlace it is rejected at
	// once.
	// +optional
	// +kubebuilder:default=Overlap
	// +kubebuilder:validation:Enum=Overlap;InPlace
	Strategy Strategy `json:"strategy,omitempty"`
	// overlap is how long the old credential is accepted after the new one is published, from 10s to 8760h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) >= duration('10s') && duration(self) <= duration('8760h')",message="must be a duration from 10s to 8760h, for example 24h"
	Overlap *metav1.Duration `json:"overlap,omitempty"`
	// terminateSessions ends existing sessions when a password is retired or replaced. Otherwise they continue, because rotation alone does
	// not revoke access. It has no effect on ElastiCache, which cannot end sessions.
	// +optional
	TerminateSessions bool `json:"terminateSessions,omitempty"`
}

// Strategy sets what happens to the old credential in a rotation.
type Strategy string

// The strategies.
const (
	Overlap Strategy = "Overlap"
	InPlace Strategy = "InPlace"
)

// DriftPolicy sets what happens if a password differs from the stored one.
type DriftPolicy string

// MissingCredentialPolicy sets what happens if the credential of a user is lost.
type MissingCredentialPolicy string

// AdoptionPolicy sets what happens to a user without an ownership mark.
type AdoptionPolicy string

// DeletionPolicy sets what happens to the resources of a tenant that is deleted.
type DeletionPolicy string

// The policies.
const (
	DriftEnforce   DriftPolicy             = "Enforce"
	DriftReport    DriftPolicy             = "Report"
	MissingFail    MissingCredentialPolicy = "Fail"
	MissingRotate  MissingCredentialPolicy = "Rotate"
	AdoptionRefuse AdoptionPolicy          = "Refuse"
	AdoptionAdopt  AdoptionPolicy          = "Adopt"
	DeletionRetain DeletionPolicy          = "Retain"
	DeletionDelete DeletionPolicy          = "Delete"
)

// Phase summarizes the state of a tenant in one word.
type Phase string

// The phases of a tenant.
const (
	// Pending: the operator has not processed the tenant yet.
	Pending Phase = "Pending"
	// Provisioning: some resources of the tenant do not exist yet.
	Provisioning Phase = "Provisioning"
	// Ready: all resources of the tenant are ready.
	Ready Phase = "Ready"
	// Rotating: all resources are ready, and an old credential is still accepted.
	Rotating Phase = "Rotating"
	// Degraded: a resource that was ready cannot be reached, or is not in the desired state.
	Degraded Phase = "Degraded"
	// Blocked: a person has to act.
	Blocked Phase = "Blocked"
	// Suspended: the operator does not check or change anything.
	Suspended Phase = "Suspended"
	// Deleting: the tenant is being deleted.
	Deleting Phase = "Deleting"
)

// The conditions of a tenant.
const (
	// ConditionReady: all resources of the tenant are ready.
	ConditionReady = "Ready"
	// ConditionDatabaseReady: the database exists and accepts the login of each app.
	ConditionDatabaseReady = "DatabaseReady"
	// ConditionCacheReady: the cache accepts the user of each app.
	ConditionCacheReady = "CacheReady"
	// ConditionCredentialsReady: the credentials of each app are stored and published to readers.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionInSync: limits, access and passwords are in the desired state.
	ConditionInSync = "InSync"
	// ConditionRotationInProgress: an old credential is still accepted.
	ConditionRotationInProgress = "RotationInProgress"
)

// TenantStatus is the observed state of a tenant. It contains no secrets.
type TenantStatus struct {
	// Records are the records of the operators that handle the tenant. They prevent that a handler runs twice for one change.
	einmal.Records `json:",inline"`

	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase summarizes the state of the tenant in one word.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// dbReady is true if the condition DatabaseReady is True.
	// +optional
	DBReady bool `json:"dbReady"`
	// redisReady is true if the condition CacheReady is True.
	// +optional
	RedisReady bool `json:"redisReady"`
	// plan is the plan whose limits are in effect.
	// +optional
	Plan Plan `json:"plan,omitempty"`
	// apps is the observed state of each app.
	// +optional
	// +listType=map
	// +listMapKey=name
	Apps []AppStatus `json:"apps,omitempty"`
	// conditions are Ready, DatabaseReady, CacheReady, CredentialsReady, InSync and RotationInProgress.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AppStatus is the observed state of an app.
type AppStatus struct {
	// name is the name of the app.
	Name string `json:"name"`
	// database is the login of the app.
	// +optional
	Database *Principal `json:"database,omitempty"`
	// cache is the cache user of the app.
	// +optional
	Cache *Principal `json:"cache,omitempty"`
}

// Principal is a login or a cache user of an app, with its credential.
type Principal struct {
	// user is the username of the app.
	// +optional
	User string `json:"user,omitempty"`
	// database is the name of the database; it is empty for a cache user.
	// +optional
	Database string `json:"database,omitempty"`
	// record is the name of the Secret or parameter that contains the credential.
	// +optional
	Record string `json:"record,omitempty"`
	// generation is the generation of the credential. The first is 1, and each rotation increments it.
	// +optional
	Generation int32 `json:"generation,omitempty"`
	// requestId is the rotation request that the credential was generated for.
	// +optional
	RequestID string `json:"requestId,omitempty"`
	// verifiedAt is when the credential was accepted for the first time.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
	// retireAfter is when the previous credential is retired. It is set during a rotation.
	// +optional
	RetireAfter *metav1.Time `json:"retireAfter,omitempty"`
	// waitsFor is the rotation request that starts when the current rotation ends.
	// +optional
	WaitsFor string `json:"waitsFor,omitempty"`
	// missingSince is when the credential was first not found. It is removed when the credential is found again.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
	// missingLooks counts the checks since then that did not find the credential. It stops at 3: three checks over at least a minute mean
	// that the credential is missing.
	// +optional
	MissingLooks int32 `json:"missingLooks,omitempty"`
	// restoredAt is when the operator last set the stored password again, because the system rejected it.
	// +optional
	RestoredAt *metav1.Time `json:"restoredAt,omitempty"`
	// restorations counts how often the operator did so. It counts from 1 again if the last time is more than ten minutes ago. From 2 on,
	// another client contests the password, and the condition InSync has the reason PasswordContested.
	// +optional
	Restorations int32 `json:"restorations,omitempty"`
	// problem describes what is wrong. It is empty if nothing is wrong.
	// +optional
	Problem string `json:"problem,omitempty"`
}
