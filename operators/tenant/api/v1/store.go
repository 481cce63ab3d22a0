package v1

// StoreKind is the kind of a store.
type StoreKind string

// The kinds of stores.
const (
	// StoreSecret keeps credentials in Secrets.
	StoreSecret StoreKind = "Secret"
	// StoreSSM keeps credentials in parameters of AWS Systems Manager.
	StoreSSM StoreKind = "SSM"
)

// StoreBackend is a store of credentials.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'SSM' ? has(self.ssm) && !has(self.secret) : has(self.secret) && !has(self.ssm)",message="give secret if kind is Secret, and ssm if it is SSM"
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",fieldPath=".kind",message="cannot be changed: the credentials would stay behind; make another TenantBackend"
type StoreBackend struct {
	// kind says what it is. It cannot be changed.
	// +kubebuilder:validation:Enum=Secret;SSM
	Kind StoreKind `json:"kind"`
	// secret keeps credentials in Secrets.
	// +optional
	Secret *SecretStore `json:"secret,omitempty"`
	// ssm keeps credentials in parameters of AWS Systems Manager.
	// +optional
	SSM *SSMStore `json:"ssm,omitempty"`
}

// SecretStore keeps credentials in Secrets.
type SecretStore struct {
	// namespace is where the Secrets are. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: the credentials would stay behind; make another TenantBackend"
	Namespace string `json:"namespace"`
}

// SSMStore keeps credentials in parameters of AWS Systems Manager.
type SSMStore struct {
	// region is the AWS region. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: the credentials would stay behind; make another TenantBackend"
	Region string `json:"region"`
	// prefix is the path that parameters are below, such as /einmal. It cannot be changed.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9._-]+){1,8}$')",message="must be a path such as /einmal/prod, of up to 8 parts"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: the credentials would stay behind; make another TenantBackend"
	Prefix string `json:"prefix"`
	// kmsKeyId is the key that parameters are encrypted with; without it, the account's default key.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyId,omitempty"`
	// tier is that of new parameters. AWS allows 10,000 parameters of the tier Standard in an account and a region, and 100,000 of the tier
	// Advanced, which it charges for. Without it, the account's settings say it.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Advanced;Intelligent-Tiering
	Tier string `json:"tier,omitempty"`
	// tags are given to each parameter.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Tags map[string]string `json:"tags,omitempty"`
	// apiEndpoint is the URL of the SSM API in place of the region's, such as that of a VPC endpoint or an emulator.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	APIEndpoint string `json:"apiEndpoint,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// namespace is the Secret's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name is the Secret's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyRef names a value in a Secret.
type SecretKeyRef struct {
	SecretRef `json:",inline"`

	// key is the value's.
	// +optional
	// +kubebuilder:default=dsn
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
