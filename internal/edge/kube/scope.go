package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CachesAllNamespaces reports whether a cache holds the objects of a kind in all namespaces. The cache of a manager that Einmal did not
// create can be limited to some namespaces, and has no method that returns them. Therefore this asks for an object in a namespace that
// cannot exist. A limited cache returns its own error; any other cache returns not found, or a timeout before its first list. Label and
// field selectors of a cache cannot be detected.
func CachesAllNamespaces(ctx context.Context, asked cache.Cache, example client.Object) bool {
	const impossible = "_"
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	err := asked.Get(ctx, client.ObjectKey{Namespace: impossible, Name: impossible}, example)
	return apierrors.IsNotFound(err) || apierrors.IsTimeout(err)
}
