package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantBackend describes the systems that tenants share: the database server, the cache and the credential store.
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

	// spec describes the systems.
	Spec TenantBackendSpec `json:"spec"`
	// status shows whether the systems can be used.
	// +optional
	Status TenantBackendStatus `json:"status,omitempty"`
}

// TenantBackendSpec describes the systems that tenants share.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterId) == has(oldSelf.clusterId)",fieldPath=".clusterId",message="immutable: existing databases, users and credentials are marked with it; create another TenantBackend"
type TenantBackendSpec struct {
	// clusterId is part of the ownership mark on everything that the operator creates. Operators of several clusters can therefore share a
	// database server: none of them changes what another one created. The default is the UID of the namespace kube-system. When tenants
	// move to a new cluster, set it to the value of the old cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]*$')",message="must consist of letters, digits and . _ -"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: existing databases, users and credentials are marked with it; create another TenantBackend"
	ClusterID string `json:"clusterId,omitempty"`
	// postgres is the database server. Without it, no app gets a database.
	// +optional
	Postgres *Postgres `json:"postgres,omitempty"`
	// cache is the cache. Without it, no app gets a cache user.
	// +optional
	Cache *CacheBackend `json:"cache,omitempty"`
	// store is where credentials are stored.
	Store StoreBackend `json:"store"`
	// plans sets the limits of each plan.
	// +optional
	// +kubebuilder:default={}
	Plans Plans `json:"plans,omitzero"`
}

// Postgres is a PostgreSQL server.
type Postgres struct {
	// dsnSecretRef names the Secret with the connection string of an administrator. The administrator needs CREATEROLE and CREATEDB, and
	// does not need to be a superuser.
	DSNSecretRef SecretKeyRef `json:"dsnSecretRef"`
	// poolSize is the maximum number of connections of the administrator. 1 means 2.
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
	// CacheElastiCache is Amazon ElastiCache, with users in user groups.
	CacheElastiCache CacheKind = "ElastiCache"
)

// CacheBackend is a cache.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'Redis' ? has(self.redis) && !has(self.elastiCache) : has(self.elastiCache) && !has(self.redis)",message="kind Redis requires the field redis, kind ElastiCache requires the field elastiCache, and the other field must not be set"
type CacheBackend struct {
	// kind is the kind of the cache.
	// +kubebuilder:validation:Enum=Redis;ElastiCache
	Kind CacheKind `json:"kind"`
	// redis describes a Redis or Valkey. It is required for the kind Redis.
	// +optional
	Redis *Redis `json:"redis,omitempty"`
	// elastiCache describes an Amazon ElastiCache. It is required for the kind ElastiCache.
	// +optional
	ElastiCache *ElastiCache `json:"elastiCache,omitempty"`
}

// Redis describes a Redis or Valkey.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || has(self.tls) && self.tls",fieldPath=".caBundle",message="requires tls: true"
type Redis struct {
	// nodes lists all nodes, including replicas, as host:port. Each node has its own ACL.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Nodes []string `json:"nodes"`
	// adminSecretRef names the Secret with the keys username and password of an administrator who may run the ACL commands.
	AdminSecretRef SecretRef `json:"adminSecretRef"`
	// tls encrypts connections and verifies the certificates of the nodes against caBundle, or against the system's certificate
	// authorities.
	// +optional
	TLS bool `json:"tls,omitempty"`
	// caBundle contains the certificates, in PEM, of the authorities that sign the certificates of the nodes. It replaces the system's
	// authorities.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}

// ElastiCache describes an Amazon ElastiCache with role-based access control.
type ElastiCache struct {
	// region is the AWS region.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region"`
	// engine is the engine of the users: redis or valkey.
	// +optional
	// +kubebuilder:default=redis
	// +kubebuilder:validation:Enum=redis;valkey
	Engine string `json:"engine,omitempty"`
	// endpoint is the address of the cache, as host:port. The operator tests passwords there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=260
	Endpoint string `json:"endpoint"`
	// userGroupIds lists the user groups to which users are added. AWS attaches one user group to a cache, so set one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	UserGroupIDs []string `json:"userGroupIds"`
	// insecure connects to the endpoint without encryption. ElastiCache supports users only with encryption, so set this only for an
	// emulator.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// apiEndpoint is the URL of the ElastiCache API if it is not the URL of the region, for example a VPC endpoint or an emulator.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	APIEndpoint string `json:"apiEndpoint,omitempty"`
}

// Plans sets the limits of each plan.
type Plans struct {
	// standard sets the limits of the plan standard.
	// +optional
	// +kubebuilder:default={}
	Standard Limits `json:"standard,omitzero"`
	// premium sets the limits of the plan premium.
	// +optional
	// +kubebuilder:default={connectionLimit: 50, statementTimeout: "5m", idleInTransactionTimeout: "5m"}
	Premium Limits `json:"premium,omitzero"`
}

// Limits are the limits of each app of a tenant.
type Limits struct {
	// connectionLimit is the maximum number of database connections. -1 means unlimited.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:validation:XValidation:rule="self != 0",message="must be at least 1, or -1 for unlimited: 0 would prevent every connection"
	ConnectionLimit int32 `json:"connectionLimit,omitempty"`
	// statementTimeout is the maximum duration of a statement, up to 576h. 0s means unlimited.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) <= duration('576h')",message="must be a duration from 0s to 576h, for example 30s"
	StatementTimeout *metav1.Duration `json:"statementTimeout,omitempty"`
	// idleInTransactionTimeout is how long a transaction may be idle, up to 576h. 0s means unlimited.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') && duration(self) <= duration('576h')",message="must be a duration from 0s to 576h, for example 1m"
	IdleInTransactionTimeout *metav1.Duration `json:"idleInTransactionTimeout,omitempty"`
}

// ConditionConnectionSecure is the condition of a TenantBackend that is True if TLS verifies every server that is not on the operator's own
// machine.
const ConditionConnectionSecure = "ConnectionSecure"

// ConditionUsersSaved is the condition of a TenantBackend that is True if every Redis node keeps its users across restarts.
const ConditionUsersSaved = "UsersSaved"

// TenantBackendStatus shows whether the systems of a backend can be used.
type TenantBackendStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, ConnectionSecure and, for a Redis, UsersSaved. Ready is True if PostgreSQL and the cache answer and grant the
	// rights that can be tested without a write; the credential store is not checked. ConnectionSecure is True if TLS verifies every server
	// that is not on the operator's own machine. UsersSaved is True if every node keeps its users across restarts.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
