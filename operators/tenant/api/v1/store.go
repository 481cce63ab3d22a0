package v1

// StoreKind is the kind of a credential store.
type StoreKind string

// The kinds of stores.
const (
	// StoreSecret stores credentials in Secrets.
	StoreSecret StoreKind = "Secret"
	// StoreSSM stores credentials in AWS Systems Manager parameters.
	StoreSSM StoreKind = "SSM"
)

// StoreBackend describes a credential store.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'SSM' ? has(self.ssm) && !has(self.secret) : has(self.secret) && !has(self.ssm)",message="kind Secret requires the field secret, kind SSM requires the field ssm, and the other field must not be set"
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",fieldPath=".kind",message="immutable: credentials are not moved to another store; create another TenantBackend"
type StoreBackend struct {
	// kind is the kind of the store. It is immutable.
	// +kubebuilder:validation:Enum=Secret;SSM
	Kind StoreKind `json:"kind"`
	// secret stores credentials in Secrets. It is required for the kind Secret.
	// +optional
	Secret *SecretStore `json:"secret,omitempty"`
	// ssm stores credentials in AWS Systems Manager parameters. It is required for the kind SSM.
	// +optional
	SSM *SSMStore `json:"ssm,omitempty"`
}

// SecretStore stores credentials in Secrets.
type SecretStore struct {
	// namespace is the namespace of the Secrets. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: credentials are not moved to another store; create another TenantBackend"
	Namespace string `json:"namespace"`
}

// SSMStore stores credentials in AWS Systems Manager parameters.
type SSMStore struct {
	// region is the AWS region. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: credentials are not moved to another store; create another TenantBackend"
	Region string `json:"region"`
	// prefix is the path of all parameters, for example /einmal. It is immutable.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9._-]+){1,8}$')",message="must be a path of 1 to 8 segments, for example /einmal/prod"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable: credentials are not moved to another store; create another TenantBackend"
	Prefix string `json:"prefix"`
	// kmsKeyId is the KMS key that encrypts the parameters. The default is the account's key for SSM.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyId,omitempty"`
	// tier is the tier of new parameters. AWS allows 10,000 parameters of the tier Standard per account and region, and 100,000 of the tier
	// Advanced, which AWS charges for. The default is the account's setting.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Advanced;Intelligent-Tiering
	Tier string `json:"tier,omitempty"`
	// tags are set on each parameter.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Tags map[string]string `json:"tags,omitempty"`
	// apiEndpoint is the URL of the SSM API if it is not the URL of the region, for example a VPC endpoint or an emulator.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	APIEndpoint string `json:"apiEndpoint,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// namespace is the namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyRef names a key of a Secret.
type SecretKeyRef struct {
	SecretRef `json:",inline"`

	// key is the key of the value in the Secret.
	// +optional
	// +kubebuilder:default=dsn
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
