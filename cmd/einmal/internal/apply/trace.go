package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// Applied is an object that was applied.
type Applied struct {
	manifest.Object
	// Resource is the object's resource, as the API server calls it.
	Resource schema.GroupVersionResource
	// UID is that of the object in the cluster.
	UID types.UID
	// Created reports that the object did not exist before.
	Created bool
}

// Type returns the object's resource as kubectl takes it, such as "clusterroles.rbac.authorization.k8s.io".
func (a Applied) Type() string { return a.Resource.GroupResource().String() }

// Trace remembers what a run has applied. It is not safe for concurrent use.
type Trace struct {
	applied []Applied
}

// Add remembers an object. An object that is applied again counts as created if this run created it.
func (t *Trace) Add(one Applied) {
	same := func(other Applied) bool { return other.UID == one.UID }
	if !slices.ContainsFunc(t.applied, same) {
		t.applied = append(t.applied, one)
	}
}

// Created returns the objects that this run created, the last one first: the order in which to remove them.
func (t *Trace) Created() []Applied {
	return t.backwards(func(one Applied) bool { return one.Created })
}

// Changed returns the objects that existed before, the last one first.
func (t *Trace) Changed() []Applied {
	return t.backwards(func(one Applied) bool { return !one.Created })
}

func (t *Trace) backwards(wanted func(Applied) bool) []Applied {
	var some []Applied
	for _, one := range slices.Backward(t.applied) {
		if wanted(one) {
			some = append(some, one)
		}
	}
	return some
}
