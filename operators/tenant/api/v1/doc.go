// Package v1 is the API of the tenant operator: the kinds Tenant and TenantBackend.
//
// +kubebuilder:object:generate=true
// +groupName=tenant.einmal.dev
package v1
