package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/config/crd"
)

// identity names the operator in its records, its finalizer, its field manager and its ownership marks. It never changes.
const identity = "tenants.einmal.dev"

// credentialsNamespace is the namespace in which the operator has the rights to store credentials. Other namespaces need a Role.
const credentialsNamespace = "tenant-credentials" //nolint:gosec // A name, not a credential.

// operator returns the operator with real connections.
func operator() *einmal.Operator {
	watches := &secretWatches{}
	return declare(&backends{connect: (&connector{watches: watches}).connect, watches: watches})
}

// declare returns the operator with the given backends.
func declare(held *backends) *einmal.Operator {
	op := einmal.New(identity, einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.Tenants, crd.TenantBackends), einmal.Workers(workers),
		einmal.PermissionsIn("", &corev1.Secret{}, "get"), // Secrets of administrators
		einmal.PermissionsIn(credentialsNamespace, &corev1.Secret{}, "get", "list", "watch", "create", "update", "delete"),
		einmal.Permissions(&corev1.Namespace{}, "get"))
	op.OnCleanup("close-backends", func(context.Context) error { return held.close() })

	onBackend := einmal.Index(op, "tenants-by-backend", func(of *v1.Tenant) (map[string]types.NamespacedName, error) {
		return map[string]types.NamespacedName{of.Spec.BackendRef.Name: {Name: of.Name}}, nil
	})
	tenants := einmal.For[v1.Tenant](op)
	provisioner := &provisioner{backends: held}
	tenants.Reconcile("provision", provisioner.provision, einmal.Watches(func(backend *v1.TenantBackend) []types.NamespacedName {
		return onBackend.Get(backend.Name)
	}))
	tenants.OnDelete("release", provisioner.release)

	checked := einmal.For[v1.TenantBackend](op)
	checked.Reconcile("check", func(ctx context.Context, c *einmal.Change[v1.TenantBackend]) error { return check(ctx, held, c) },
		einmal.Watches(notSaved))
	return op
}
