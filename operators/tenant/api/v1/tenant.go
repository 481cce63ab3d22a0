package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
)

// Tenant asks for what the apps of a tenant need in systems that tenants share: a database with logins, users of a cache, and credentials, each
// of which is generated once.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be up to 63 lower-case letters, digits and hyphens: roles, users and keys are named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",fieldPath=".spec",reason=FieldValueRequired,message="say at least which backend the tenant is on, in spec.backendRef.name, and which apps it has, in spec.apps"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the tenant asks for.
	// +optional
	Spec TenantSpec `json:"spec,omitempty"`
	// status is what became of it.
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec is what a tenant asks for.
type TenantSpec struct {
	// plan says how much the tenant may use at a time: the limits are in the TenantBackend. It can be changed at any time, which touches no
	// credential.
	// +optional
	// +kubebuilder:default=standard
	// +kubebuilder:validation:Enum=standard;premium
	Plan Plan `json:"plan,omitempty"`

	// backendRef says where the tenant is. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: what the tenant has would stay behind; make another Tenant"
	BackendRef BackendRef `json:"backendRef"`

	// apps are the tenant's apps. Each has a credential of its own. What becomes of one that is taken out is said by deletionPolicy.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Apps []App `json:"apps,omitempty"`

	// credentials says how credentials are rotated and tried.
	// +optional
	// +kubebuilder:default={}
	Credentials Credentials `json:"credentials,omitempty"`

	// driftPolicy says what to do if a database or a cache does not accept the stored password: Enforce gives it the stored one, Report tells it
	// in the condition InSync and leaves it.
	// +optional
	// +kubebuilder:default=Enforce
	// +kubebuilder:validation:Enum=Enforce;Report
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// missingCredentialPolicy says what to do if a user is there and its credential is not: Fail waits for a person, Rotate generates another.
	// With Rotate, who has the lost password can go on as long as the overlap of a rotation lasts, but for users of ElastiCache.
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:Enum=Fail;Rotate
	MissingCredentialPolicy MissingCredentialPolicy `json:"missingCredentialPolicy,omitempty"`

	// adoptionPolicy says what to do if a role or a user of the right name is there without a mark: Refuse leaves it, Adopt takes it over. What
	// carries the mark of another owner is never taken over.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Adopt
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// deletionPolicy says what to do with what the tenant has when the Tenant is deleted: Retain keeps all of it, so that a Tenant of the same
	// name finds it again; Delete removes users and credentials, and fails where that would lose data.
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// dropOwned lets deletionPolicy Delete remove the database with all that is in it.
	// +optional
	DropOwned bool `json:"dropOwned,omitempty"`

	// suspend lets everything stay as it is: nothing is looked at or changed, but for the deletion.
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
	// name is the TenantBackend's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// App is an app of a tenant.
type App struct {
	// name is made part of the names of roles and users.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, such as web"
	Name string `json:"name"`
	// database says what the app has in the tenant's database.
	// +optional
	// +kubebuilder:default={}
	Database Database `json:"database,omitempty"`
	// cache says what the app has in the cache.
	// +optional
	// +kubebuilder:default={}
	Cache Cache `json:"cache,omitempty"`
}

// Database is what an app has in the tenant's database.
type Database struct {
	// enabled says whether the app has a login.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// access says what the login may do: owner makes and changes tables, readWrite and readOnly use those that there are.
	// +optional
	// +kubebuilder:default=owner
	// +kubebuilder:validation:Enum=owner;readWrite;readOnly
	Access Access `json:"access,omitempty"`
	// connectionLimit is how many connections the app may have, in place of what the plan says; -1 for any number.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:validation:XValidation:rule="self != 0",message="must be at least 1, or -1 for any number: with 0 nobody could connect"
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`
}

// Access is what a login may do.
type Access string

// What a login may do.
const (
	AccessOwner     Access = "owner"
	AccessReadWrite Access = "readWrite"
	AccessReadOnly  Access = "readOnly"
)

// Cache is what an app has in the cache.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scripting) || self.scripting != 'Allowed' || !has(self.profile) || self.profile != 'readOnly'",fieldPath=".scripting",message="must not be Allowed with the profile readOnly, which has no scripts"
type Cache struct {
	// enabled says whether the app has a user.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// keyPrefix is what the app's keys begin with, behind the tenant's name and a colon. Without it the app has all keys of the tenant.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9:._/-]*$')",message="must be letters, digits and any of : . _ / -, since a pattern would open keys of others"
	KeyPrefix string `json:"keyPrefix,omitempty"`
	// profile says what the user may do with its keys.
	// +optional
	// +kubebuilder:default=readWrite
	// +kubebuilder:validation:Enum=readWrite;readOnly
	Profile Access `json:"profile,omitempty"`
	// scripting says whether the user may run scripts and functions. A script without an end stops the cache for all tenants. Without this field
	// a user that has the right keeps it, and a user that is made now does not get it.
	// +optional
	// +kubebuilder:validation:Enum=Allowed;Denied
	Scripting Scripting `json:"scripting,omitempty"`
}

// Scripting says whether a user of the cache may run scripts and functions.
type Scripting string

// Whether a user of the cache may run scripts and functions.
const (
	ScriptingAllowed Scripting = "Allowed"
	ScriptingDenied  Scripting = "Denied"
)

// Credentials says how credentials are rotated and tried.
type Credentials struct {
	// rotation asks for another credential for each app.
	// +optional
	// +kubebuilder:default={}
	Rotation Rotation `json:"rotation,omitempty"`
	// probeInterval is how often it is tried whether the credentials are accepted, from 10s to 24h.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="must be a time from 10s to 24h, for example 10m"
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
}

// Rotation asks for another credential.
type Rotation struct {
	// requestId is any text that was not there before, such as a date: each new one rotates once. It is not secret.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RequestID string `json:"requestId,omitempty"`
	// strategy says what becomes of the old credential: with Overlap it is accepted until the overlap has ended, with InPlace it is refused at
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) >= duration('10s') && duration(self) <= duration('8760h')",message="must be a time from 10s to 8760h, for example 24h"
	Overlap *metav1.Duration `json:"overlap,omitempty"`
	// terminateSessions ends what is logged in when the old credential is taken out of use. Else that goes on: rotated is not revoked. It does
	// nothing to ElastiCache, which has no means for it.
	// +optional
	TerminateSessions bool `json:"terminateSessions,omitempty"`
}

// Strategy says what becomes of the old credential in a rotation.
type Strategy string

// The strategies.
const (
	Overlap Strategy = "Overlap"
	InPlace Strategy = "InPlace"
)

// DriftPolicy says what to do with a password that is not the stored one.
type DriftPolicy string

// MissingCredentialPolicy says what to do with a user whose credential is lost.
type MissingCredentialPolicy string

// AdoptionPolicy says what to do with a user that carries no mark.
type AdoptionPolicy string

// DeletionPolicy says what to do with what a tenant has, when it is deleted.
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

// Phase tells in one word how far a tenant is.
type Phase string

// The phases of a tenant.
const (
	// Pending: nothing was done yet.
	Pending Phase = "Pending"
	// Provisioning: some of what the tenant asks for is not there yet.
	Provisioning Phase = "Provisioning"
	// Ready: all that the tenant asks for is there.
	Ready Phase = "Ready"
	// Rotating: all is there, and an old credential is still accepted.
	Rotating Phase = "Rotating"
	// Degraded: something that was there cannot be reached now, or is not as it should be.
	Degraded Phase = "Degraded"
	// Blocked: a person has to look.
	Blocked Phase = "Blocked"
	// Suspended: nothing is looked at.
	Suspended Phase = "Suspended"
	// Deleting: the tenant is being deleted.
	Deleting Phase = "Deleting"
)

// The conditions of a tenant.
const (
	// ConditionReady: all that the tenant asks for is there.
	ConditionReady = "Ready"
	// ConditionDatabaseReady: the database is there, and each app's login is accepted.
	ConditionDatabaseReady = "DatabaseReady"
	// ConditionCacheReady: each app's user of the cache is accepted.
	ConditionCacheReady = "CacheReady"
	// ConditionCredentialsReady: each app's credentials are stored, and readers get them.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionInSync: the limits of the plan hold, and no password differs from the stored one.
	ConditionInSync = "InSync"
	// ConditionRotationInProgress: an old credential is still accepted.
	ConditionRotationInProgress = "RotationInProgress"
)

// TenantStatus is what became of a tenant. It holds no secret.
type TenantStatus struct {
	// The memory of the operators that handle the tenant, so that nothing is done twice.
	einmal.Records `json:",inline"`

	// observedGeneration is the generation of the spec that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase tells in one word how far the tenant is.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// dbReady is whether the condition DatabaseReady is true.
	// +optional
	DBReady bool `json:"dbReady"`
	// redisReady is whether the condition CacheReady is true.
	// +optional
	RedisReady bool `json:"redisReady"`
	// plan is the plan whose limits hold.
	// +optional
	Plan Plan `json:"plan,omitempty"`
	// apps tells of each app.
	// +optional
	// +listType=map
	// +listMapKey=name
	Apps []AppStatus `json:"apps,omitempty"`
	// conditions tell how far the tenant is.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AppStatus is what became of an app.
type AppStatus struct {
	// name is the app's.
	Name string `json:"name"`
	// database is its login.
	// +optional
	Database *Principal `json:"database,omitempty"`
	// cache is its user of the cache.
	// +optional
	Cache *Principal `json:"cache,omitempty"`
}

// Principal is a login or a user of an app, with its credential.
type Principal struct {
	// user is who the app logs in as.
	// +optional
	User string `json:"user,omitempty"`
	// database is the database, of a login.
	// +optional
	Database string `json:"database,omitempty"`
	// record is where the credential is: the name of a Secret, or of a parameter.
	// +optional
	Record string `json:"record,omitempty"`
	// generation is the credential's, which counts from 1: each rotation makes one more.
	// +optional
	Generation int32 `json:"generation,omitempty"`
	// requestId is the rotation that the credential is the answer to.
	// +optional
	RequestID string `json:"requestId,omitempty"`
	// verifiedAt is when the credential was accepted for the first time.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
	// retireAfter is when the credential before this one is taken out of use, during a rotation.
	// +optional
	RetireAfter *metav1.Time `json:"retireAfter,omitempty"`
	// waitsFor is a rotation that was asked for and begins when the one before has ended.
	// +optional
	WaitsFor string `json:"waitsFor,omitempty"`
	// scripting says whether a user of the cache may run scripts and functions.
	// +optional
	Scripting Scripting `json:"scripting,omitempty"`
	// missingSince is when the credential was not found for the first time, as long as it is not found.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
	// missingLooks is how often it was not found since then; it stops at 3, which is enough to count as missing after a minute.
	// +optional
	MissingLooks int32 `json:"missingLooks,omitempty"`
	// problem is what is wrong; "" for nothing.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// TenantList is a list of tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}
