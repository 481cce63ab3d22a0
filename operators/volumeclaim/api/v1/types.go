// Package v1 is the API of the volume-claim operator: the kind EphemeralVolumeClaim.
//
// +kubebuilder:object:generate=true
// +groupName=volumeclaim.einmal.dev
package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
)

// EphemeralVolumeClaim requests a volume that exists as long as the claim. With a podSelector the claim itself is temporary: it is deleted
// when the selected pods do not need it any more.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=evc
// +kubebuilder:printcolumn:name=Size,type=string,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name=PVC,type=string,JSONPath=`.status.pvcName`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Capacity,type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name=Used,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Used")].reason`
// +kubebuilder:printcolumn:name=Expires,type=string,priority=1,JSONPath=`.status.expires`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec) && has(self.spec.size)",fieldPath=".spec.size",reason=FieldValueRequired,message="say how much space the claim asks for, for example 1Gi"
type EphemeralVolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the claim.
	// +optional
	Spec EphemeralVolumeClaimSpec `json:"spec,omitempty"`
	// status is the observed state of the claim.
	// +optional
	Status EphemeralVolumeClaimStatus `json:"status,omitempty"`
}

// EphemeralVolumeClaimSpec is the desired state of a claim.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="cannot be changed: the class of a volume is chosen when the volume is created"
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) || !has(self.gracePeriod) && !has(self.expiryPeriod)",fieldPath=".podSelector",reason=FieldValueRequired,message="say for which pods the claim is, since gracePeriod and expiryPeriod depend on them; {} is all pods of the namespace"
type EphemeralVolumeClaimSpec struct {
	// size is the requested space, from 1Mi to 64Ti. It is required. It can grow but not shrink.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="must be a number with a unit, for example 500M or 1Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Ti')) <= 0",message="must be from 1Mi to 64Ti"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",messageExpression="'can grow but not shrink: a volume does not give back space, and this one has ' + string(oldSelf)",message="can grow but not shrink: a volume does not give back space"
	Size resource.Quantity `json:"size,omitempty"`

	// storageClassName is the storage class of the volume. The default is the default class of the cluster. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// accessModes sets how nodes may mount the volume. It is immutable.
	// +optional
	// +listType=set
	// +kubebuilder:default={ReadWriteOnce}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: how a volume may be mounted is chosen when the volume is created"
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// podSelector selects the pods of the namespace that the claim is for, among those that mount the volume. {} selects all pods. Without
	// it, the claim stays until a person deletes it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="each of matchExpressions has the operator In or NotIn and values, or the operator Exists or DoesNotExist and no values"
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// gracePeriod is how long the claim is kept after the last selected pod is gone, from 1s to 8760h, for example 30m. A new selected pod
	// stops the clock. Without it, a claim that was used is not deleted.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$')",message="must be a time in hours, minutes and seconds, for example 30m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') || duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be from 1s to 8760h, which is a year"
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// expiryPeriod is how long after its creation the claim is deleted if no selected pod has used it, from 1s to 8760h, for example 24h.
	// Without it, a claim that was never used is not deleted.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$')",message="must be a time in hours, minutes and seconds, for example 30m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,6}(h([0-9]{1,6}m)?([0-9]{1,6}s)?|m([0-9]{1,6}s)?|s)$') || duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be from 1s to 8760h, which is a year"
	ExpiryPeriod *metav1.Duration `json:"expiryPeriod,omitempty"`
}

// Phase summarizes the state of a claim in one word.
type Phase string

// The phases of a claim.
const (
	// Pending: the volume was requested and does not exist yet.
	Pending Phase = "Pending"
	// Bound: a volume of the requested size exists.
	Bound Phase = "Bound"
	// Resizing: the volume exists and is growing.
	Resizing Phase = "Resizing"
)

// ConditionReady is True while a volume of the requested size exists.
const ConditionReady = "Ready"

// ConditionUsed is True while a selected pod uses the volume. Claims without a podSelector do not have it.
const ConditionUsed = "Used"

// EphemeralVolumeClaimStatus is the observed state of a claim.
type EphemeralVolumeClaimStatus struct {
	// Records are the records of the operators that handle the claim. They prevent that a handler runs twice for one change.
	einmal.Records `json:",inline"`

	// pvcName is the PersistentVolumeClaim that was created for the claim.
	// +optional
	PVCName string `json:"pvcName,omitempty"`
	// phase summarizes the state of the claim in one word.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// capacity is the current size of the volume.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// firstUsed is when a selected pod was first seen to use the volume.
	// +optional
	FirstUsed *metav1.Time `json:"firstUsed,omitempty"`
	// unusedSince is when the operator first saw that no selected pod uses the volume any more.
	// +optional
	UnusedSince *metav1.Time `json:"unusedSince,omitempty"`
	// expires is when the claim is deleted, unless a pod uses it.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// conditions are Ready and, with a podSelector, Used.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EphemeralVolumeClaimList is a list of claims.
//
// +kubebuilder:object:root=true
type EphemeralVolumeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EphemeralVolumeClaim `json:"items"`
}
