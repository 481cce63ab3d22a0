package engine

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/objects"
)

// readable turns the changes of a watch into those between versions that could be decoded. While an object cannot be decoded, its last
// version that could be decoded stands for it. It is called for one change after the other.
type readable struct {
	failed func(delivered any) bool
	// last holds the last versions that could be decoded of the objects that cannot be decoded now.
	last map[types.NamespacedName]client.Object
}

// forget removes all objects.
func (r *readable) forget() { r.last = map[types.NamespacedName]client.Object{} }

// of returns the changes that the functions of handlers may see.
func (r *readable) of(c change) []change {
	beforeFailed, afterFailed := c.before != nil && r.failed(c.before), c.after != nil && r.failed(c.after)
	if !beforeFailed && !afterFailed {
		return []change{c}
	}
	key := client.ObjectKeyFromObject(c.objects()[0])
	before := c.before
	if beforeFailed {
		before = r.last[key]
	}
	delete(r.last, key)
	replaced := before != nil && c.after != nil && before.GetUID() != c.after.GetUID()
	switch {
	case before != nil && (c.after == nil || afterFailed && replaced):
		return []change{{kind: objects.Deleted, before: before}}
	case afterFailed:
		if before != nil {
			r.last[key] = before
		}
		return nil
	case c.after == nil:
		return nil
	case before == nil:
		return []change{{kind: objects.Added, after: c.after}}
	}
	return []change{{kind: c.kind, before: before, after: c.after}}
}
