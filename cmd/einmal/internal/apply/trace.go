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
	// Resource is the resource of the object's kind.
	Resource schema.GroupVersionResource
	// UID is the UID of the object in the cluster.
	UID types.UID
	// Created reports whether the object did not exist before.
	Created bool
}

// Type returns the object's resource in the form that kubectl accepts, such as "clusterroles.rbac.authorization.k8s.io".
func (a Applied) Type() string { return a.Resource.GroupResource().String() }

// Trace records the objects that a run has applied. It is not safe for concurrent use.
type Trace struct {
	applied []Applied
}

// Add records an object. If it was recorded before, the first record is kept, so that an object that this run created
// still counts as created.
func (t *Trace) Add(one Applied) {
	same := func(other Applied) bool { return other.UID == one.UID }
	if !slices.ContainsFunc(t.applied, same) {
		t.applied = append(t.applied, one)
	}
}

// Created returns the objects that this run created, newest first: the order in which to delete them.
func (t *Trace) Created() []Applied {
	return t.newestFirst(func(one Applied) bool { return one.Created })
}

// Changed returns the objects that existed before this run, newest first.
func (t *Trace) Changed() []Applied {
	return t.newestFirst(func(one Applied) bool { return !one.Created })
}

func (t *Trace) newestFirst(wanted func(Applied) bool) []Applied {
	var some []Applied
	for _, one := range slices.Backward(t.applied) {
		if wanted(one) {
			some = append(some, one)
		}
	}
	return some
}
