// Package crd holds the definitions of the kinds Tenant and TenantBackend, as controller-gen writes them.
package crd

import _ "embed"

// Tenants is the CustomResourceDefinition of Tenant.
//
//go:embed tenant.einmal.dev_tenants.yaml
var Tenants []byte

// TenantBackends is the CustomResourceDefinition of TenantBackend.
//
//go:embed tenant.einmal.dev_tenantbackends.yaml
var TenantBackends []byte
