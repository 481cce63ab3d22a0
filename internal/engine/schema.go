package engine

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// How often it is asked which schemas there are. The API server ends the watches of a kind whose definition changes: when watches
// begin again, it is asked some times more, since schemas are published a moment later.
const (
	schemaEvery = time.Minute
	schemaSoon  = 2 * time.Second
	schemaTimes = 3
)

// shape is the form of a kind's objects: what handlers declare, with what the schema fills in, and what the API server tells of
// the kind. A pass keeps to the one that it has begun with.
type shape struct {
	pure        handler.Kind
	description kube.Description
	// hidesRecords: an earlier release may have kept records in the status, which the Go type of this one drops on reading.
	hidesRecords bool
}

// shapes holds the newest shape of a kind.
type shapes struct {
	newest atomic.Pointer[shape]
	// digests are set before the first pass.
	digests object.Digester
}

func (s *shapes) now() *shape { return s.newest.Load() }

func (s *shapes) set(next shape) {
	next.pure.Digests = s.digests
	s.newest.Store(&next)
}

func (s *shapes) digest(with object.Digester) {
	s.digests = with
	s.set(*s.now())
}

// shapeOf makes the shape of a kind that is described so.
func (k *keeper) shapeOf(found kube.Description) shape {
	pure := k.kind.Pure(k.settings.Identity, found.Defaults)
	hides := pure.Recorded() && found.Carrier == record.Status && !k.typeHasRoom()
	if hides {
		found.Carrier = record.Annotation
		k.reports.NoFieldForRecords()
	}
	return shape{pure: pure, description: found, hidesRecords: hides}
}

// schemas keeps the shapes of the kinds that are served up to date.
type schemas struct {
	mu      sync.Mutex
	keepers map[schema.GroupVersionKind]*keeper
}

// keep keeps the shape of a kind up to date until the end is called. Those of built-in kinds do not change.
func (s *schemas) keep(k *keeper) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.shapes.now().description.Schema == "" {
		return func() {}
	}
	if s.keepers == nil {
		s.keepers = map[schema.GroupVersionKind]*keeper{}
	}
	s.keepers[k.kind.GVK] = k
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.keepers, k.kind.GVK)
	}
}

func (s *schemas) kept() []*keeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*keeper, 0, len(s.keepers))
	for _, k := range s.keepers {
		all = append(all, k)
	}
	return all
}

// followSchemas keeps the shapes of all kinds up to date until the context ends.
func (o *Operator) followSchemas(ctx context.Context) {
	ticker := time.NewTicker(schemaEvery)
	defer ticker.Stop()
	soon := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.WatchHealth.Begun():
			if soon <= 0 { // Else it goes on as it does: where there are many watches, some begin all the time.
				ticker.Reset(schemaSoon)
			}
			soon = schemaTimes
			continue
		case <-ticker.C:
		}
		if soon--; soon == 0 {
			ticker.Reset(schemaEvery)
		}
		o.refresh(ctx)
	}
}

// refresh reads the schemas that have changed. It retries failures at the next tick.
func (o *Operator) refresh(ctx context.Context) {
	kept := o.schemas.kept()
	if len(kept) == 0 {
		return
	}
	published, err := kube.Schemas(ctx, o.Discovery)
	if err != nil {
		o.Settings.Log.Debug("cannot list the published schemas", "error", err)
		return
	}
	for _, k := range kept {
		at, found := published[k.kind.GVK.GroupVersion()]
		if !found || at == k.shapes.now().description.Schema {
			continue
		}
		described, err := kube.Describe(ctx, o.Discovery, k.kind.GVK)
		if err != nil {
			k.reports.Log.Debug("cannot read the changed schema", "error", err)
			continue
		}
		k.reshape(described)
	}
}

// reshape takes over a new description of the kind. No handler runs and nothing is written because of it: passes that are running
// keep the description that they began with, and later passes fill in the new defaults on both sides of each comparison. The hash of
// a schema covers all kinds of its group, so most new descriptions are equal to the last one; these are not logged.
func (k *keeper) reshape(described kube.Description) {
	before := k.shapes.now().description
	k.shapes.set(k.shapeOf(described))
	after := k.shapes.now().description
	if sameSchema(before, after) {
		k.reports.Log.Debug("schema of another kind in this group changed")
	} else {
		k.reports.Log.Info("schema of kind changed", "records", string(after.Carrier))
	}
	if before.Carrier != after.Carrier {
		k.store.CarrierChanged()
		k.reports.Log.Info("storage of records changed, each record moves with the next write of its object",
			"before", string(before.Carrier), "now", string(after.Carrier))
	}
}

// sameSchema reports whether two descriptions of a kind differ at most in the hash of the group's schemas.
func sameSchema(one, other kube.Description) bool {
	one.Schema, other.Schema = "", ""
	return reflect.DeepEqual(one, other)
}
