package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Backup says when backups are made, how many are kept, and where. A backup is a dump of the database of spec.auth: in the format of pg_restore, or the SQL of
// mariadb-dump, compressed by gzip.
type Backup struct {
	// schedule is when backups are made: five fields as of cron, for example "0 3 * * *", or a word such as @daily.
	// +optional
	// +kubebuilder:default="0 3 * * *"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule,omitempty"`
	// timeZone is the time zone of the schedule, for example Europe/Berlin.
	// +optional
	// +kubebuilder:default=Etc/UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// retention says which backups are kept in the volume. The default keeps 7.
	// +optional
	// +kubebuilder:default={count: 7}
	Retention *Retention `json:"retention,omitempty"`
	// claim is the volume of the backups.
	// +optional
	// +kubebuilder:default={}
	Claim BackupClaim `json:"claim,omitempty"`
	// s3 is a bucket that each backup is copied to. A backup has failed if it is not there. By default, backups are in the volume only.
	// +optional
	S3 *BackupBucket `json:"s3,omitempty"`
}

// Bucket is a bucket of an object storage with the API of Amazon S3.
type Bucket struct {
	// endpoint is the URL of the storage, for example https://s3.eu-central-1.amazonaws.com.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[A-Za-z0-9.-]+(:[0-9]+)?$')",message="must be a URL without a path, for example https://s3.eu-central-1.amazonaws.com"
	Endpoint string `json:"endpoint"`
	// region is the region of the bucket.
	// +optional
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// bucket is the name of the bucket, which must exist.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]+[a-z0-9]$')",message="must be the name of a bucket: at least 3 lowercase letters, digits, dots and hyphens"
	Bucket string `json:"bucket"`
	// prefix is a folder of the bucket, for example the name of the cluster. The backups of a Database are in PREFIX/NAMESPACE/NAME. The default is the whole bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*$') && !self.split('/').exists(part, part == '.' || part == '..')",message="must be names of letters, digits and the characters _ . = - with slashes between them, for example clusters/blue"
	Prefix string `json:"prefix,omitempty"`
	// secretName is the Secret, in the namespace of the Database, whose keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have the access key. If its key ca.crt has
	// certificates in PEM, the certificate of the endpoint is checked with them too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// BackupBucket is a bucket that backups are copied to.
type BackupBucket struct {
	Bucket `json:",inline"`
	// retention says which backups are kept in the bucket. The default is that of the volume.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
}

// Retention says which backups are kept, by exactly one of its fields. Older ones are deleted after each backup that succeeds.
//
// +kubebuilder:validation:XValidation:rule="has(self.count) != has(self.days)",message="set either count or days; to change from one to the other, set the first to null"
type Retention struct {
	// count is how many backups are kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`
	// days is for how many days backups are kept. The last one is always kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	Days *int32 `json:"days,omitempty"`
}

// BackupClaim is the PersistentVolumeClaim NAME-backup, whose volume holds the backups.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="immutable: the class of a volume is chosen when the volume is created"
type BackupClaim struct {
	// storage is the size of the volume. The default is spec.storage. It can grow but not shrink: a smaller value changes nothing.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('300Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Ti')) <= 0",message="must be a size from 300Mi to 64Ti, for example 100Gi"
	Storage *resource.Quantity `json:"storage,omitempty"`
	// storageClassName is the storage class of the volume. The default is the default class of the cluster. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// BackupStatus is what is known of the backups.
type BackupStatus struct {
	// lastSuccess is the last backup.
	// +optional
	LastSuccess *BackupResult `json:"lastSuccess,omitempty"`
	// lastFailure is the last attempt to make a backup that failed.
	// +optional
	LastFailure *BackupFailure `json:"lastFailure,omitempty"`
}

// BackupResult is a backup.
type BackupResult struct {
	// name is the name of the backup: the time when it began, in UTC. It is missing if the Pod that has made it was deleted before the operator saw its result.
	// +optional
	Name string `json:"name,omitempty"`
	// time is when the backup began. A backup of a standby has what the standby had then, which can lack what the primary had committed just before.
	Time metav1.Time `json:"time"`
	// job is the Job that made it.
	Job string `json:"job"`
	// location is where it is: a folder of the claim, as CLAIM/NAME, or of the bucket, as s3://BUCKET/PREFIX/NAMESPACE/DATABASE/NAME.
	// +optional
	Location string `json:"location,omitempty"`
	// size is its size.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// source says whether it is the dump of the primary or of a standby.
	// +optional
	Source Role `json:"source,omitempty"`
}

// BackupFailure is an attempt to make a backup that failed.
type BackupFailure struct {
	// time is when it failed.
	Time metav1.Time `json:"time"`
	// job is the Job that failed.
	Job string `json:"job"`
	// message says why.
	Message string `json:"message"`
}

// Bootstrap says what a new database begins with.
type Bootstrap struct {
	// fromBackup restores a backup into the new database, before the database accepts connections.
	FromBackup BackupSource `json:"fromBackup"`
}

// BackupSource names a backup.
//
// +kubebuilder:validation:XValidation:rule="has(self.s3) || !has(self.__namespace__)",fieldPath=".namespace",message="needs s3: the volume of a backup can be used in its own namespace only"
type BackupSource struct {
	// database is the name of the Database of which the backup is. It need not exist any more: its claim, or its folder of the bucket, is enough.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Database string `json:"database"`
	// name is the name of the backup, as status.backup.lastSuccess.name has it. The default is the newest backup.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{8}T[0-9]{6}Z$`
	Name string `json:"name,omitempty"`
	// s3 is the bucket with the backup, as spec.backup.s3 of that Database has it. By default, the backup is in its claim, in the namespace of this Database.
	// +optional
	S3 *Bucket `json:"s3,omitempty"`
	// namespace is the namespace of that Database. The default is the namespace of this one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}
