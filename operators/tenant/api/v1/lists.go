package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TenantList is a list of Tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}

// TenantBackendList is a list of TenantBackends.
//
// +kubebuilder:object:root=true
type TenantBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TenantBackend `json:"items"`
}
