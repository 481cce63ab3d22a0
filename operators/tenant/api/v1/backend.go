package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantBackend tells where tenants are: the database server, the cache and the store of credentials that they share.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tnb
// +kubebuilder:printcolumn:name=Store,type=string,JSONPath=`.spec.store.kind`
// +kubebuilder:printcolumn:name=Cache,type=string,JSONPath=`.spec.cache.kind`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type TenantBackend struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec tells where things are.
	Spec TenantBackendSpec `json:"spec"`
	// status tells whether they can be reached.
	// +optional
	Status TenantBackendStatus `json:"status,omitempty"`
}

// TenantBackendSpec tells where tenants are.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterId) == has(oldSelf.clusterId)",fieldPath=".clusterId",message="cannot be changed: the marks on all that there is would be those of another; make another TenantBackend"
type TenantBackendSpec struct {
	// clusterId is part of the mark on all that the operator makes, so that operators of several clusters can share a database server and none
	// touches what another has made. The default is the uid of the namespace kube-system. Give that of the old cluster when tenants move to a
	// new one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]*$')",message="must be letters, digits and any of . _ -"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: the marks on all that there is would be those of another; make another TenantBackend"
	ClusterID string `json:"clusterId,omitempty"`
	// postgres is the database server. Without it no app has a database.
	// +optional
	Postgres *Postgres `json:"postgres,omitempty"`
	// cache is the cache. Without it no app has a user of one.
	// +optional
	Cache *CacheBackend `json:"cache,omitempty"`
	// store is where credentials are kept.
	Store StoreBackend `json:"store"`
	// plans are the limits of the plans.
	// +optional
	// +kubebuilder:default={}
	Plans Plans `json:"plans,omitzero"`
}

// Postgres is a PostgreSQL server.
type Postgres struct {
	// dsnSecretRef is the Secret with the connection string of an admin, who must be CREATEROLE and CREATEDB, and need not be a superuser.
	DSNSecretRef SecretKeyRef `json:"dsnSecretRef"`
	// poolSize is the most connections that the admin has.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	PoolSize int32 `json:"poolSize,omitempty"`
}

// CacheKind is the kind of a cache.
type CacheKind string

// The kinds of caches.
const (
	// CacheRedis is Redis or Valkey, with users in the ACL of each node.
	CacheRedis CacheKind = "Redis"
	// CacheElastiCache is ElastiCache, with users in user groups.
	CacheElastiCache CacheKind = "ElastiCache"
)

// CacheBackend is a cache.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'Redis' ? has(self.redis) && !has(self.elastiCache) : has(self.elastiCache) && !has(self.redis)",message="give redis if kind is Redis, and elastiCache if it is ElastiCache"
type CacheBackend struct {
	// kind says what it is.
	// +kubebuilder:validation:Enum=Redis;ElastiCache
	Kind CacheKind `json:"kind"`
	// redis is a Redis or Valkey.
	// +optional
	Redis *Redis `json:"redis,omitempty"`
	// elastiCache is an ElastiCache.
	// +optional
	ElastiCache *ElastiCache `json:"elastiCache,omitempty"`
}

// Redis is a Redis or Valkey.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || has(self.tls) && self.tls",fieldPath=".caBundle",message="needs tls: true"
type Redis struct {
	// nodes are all nodes, as host:port: each has an ACL of its own.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Nodes []string `json:"nodes"`
	// adminSecretRef names the Secret with the username and the password of an admin, who may use the command ACL.
	AdminSecretRef SecretRef `json:"adminSecretRef"`
	// tls encrypts connections, and checks the certificate against caBundle, or the system's authorities.
	// +optional
	TLS bool `json:"tls,omitempty"`
	// caBundle has the certificates of the authorities that may have signed those of the nodes, in PEM, in place of the system's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}

// ElastiCache is an ElastiCache with role-based access control.
type ElastiCache struct {
	// region is the AWS region.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region"`
	// engine is the engine of the users.
	// +optional
	// +kubebuilder:default=redis
	// +kubebuilder:validation:Enum=redis;valkey
	Engine string `json:"engine,omitempty"`
	// endpoint is the cache's, as host:port, where passwords are tried.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=260
	Endpoint string `json:"endpoint"`
	// userGroupIds is the user group that is attached to the cache: users are put into it. AWS attaches one group to a cache, so name one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	UserGroupIDs []string `json:"userGroupIds"`
	// insecure connects to the endpoint without encryption. ElastiCache has users only where connections are encrypted, so this is for an
	// emulator.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// apiEndpoint is the URL of the ElastiCache API in place of the region's, such as that of a VPC endpoint or an emulator.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	APIEndpoint string `json:"apiEndpoint,omitempty"`
}

// Plans are the limits of the plans.
type Plans struct {
	// standard are those of the plan standard.
	// +optional
	// +kubebuilder:default={}
	Standard Limits `json:"standard,omitzero"`
	// premium are those of the plan premium.
	// +optional
	// +kubebuilder:default={connectionLimit: 50, statementTimeout: "5m", idleInTransactionTimeout: "5m"}
	Premium Limits `json:"premium,omitzero"`
}

// Limits are what each app of a tenant may use at a time.
type Limits struct {
	// connectionLimit is how many connections to the database; -1 for any number.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:validation:XValidation:rule="self != 0",message="must be at least 1, or -1 for any number: with 0 nobody could connect"
	ConnectionLimit int32 `json:"connectionLimit,omitempty"`
	// statementTimeout is how long a statement may take, up to 576h; 0s for any time.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) <= duration('576h')",message="must be a time from 0s to 576h, for example 30s"
	StatementTimeout *metav1.Duration `json:"statementTimeout,omitempty"`
	// idleInTransactionTimeout is how long a transaction may wait for its next statement, up to 576h; 0s for any time.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) <= duration('576h')",message="must be a time from 0s to 576h, for example 1m"
	IdleInTransactionTimeout *metav1.Duration `json:"idleInTransactionTimeout,omitempty"`
}

// ConditionConnectionSecure is a condition of a backend: TLS verifies each server that is not on the operator's own machine.
const ConditionConnectionSecure = "ConnectionSecure"

// ConditionUsersSaved is the condition of a TenantBackend that each node of a Redis keeps its users when it restarts.
const ConditionUsersSaved = "UsersSaved"

// TenantBackendStatus tells whether a backend can be reached.
type TenantBackendStatus struct {
	// observedGeneration is the generation of the spec that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready: whether everything can be reached with the rights that are needed; ConnectionSecure: whether TLS verifies each
	// server that is not on the operator's own machine; and of a Redis UsersSaved: whether each node saves its users.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TenantBackendList is a list of backends.
//
// +kubebuilder:object:root=true
type TenantBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TenantBackend `json:"items"`
}
