// Package v1 is the API of the tenant operator: the kinds Tenant, and TenantBackend, which tells where tenants are.
//
// +kubebuilder:object:generate=true
// +groupName=tenant.einmal.dev
package v1
