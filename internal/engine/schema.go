package engine

import (
	"context"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// How often it is asked which schemas there are. The API server ends the watches of a kind whose definition changes: when watches
// begin again, it is asked some times more, since schemas are published a moment later.
const (
	schemaEvery = time.Minute
	schemaSoon  = 2 * time.Second
	schemaTimes = 3
)

// schemas keeps the views of the kinds that are served up to date.
type schemas struct {
	// controllers has as keys those that handle the kinds.
	controllers sync.Map
}

// keep keeps the view of a kind up to date until the end is called. Those of built-in kinds do not change.
func (s *schemas) keep(k *kindController) (end func()) {
	if k.views.Now().Description.Schema == "" {
		return func() {}
	}
	s.controllers.Store(k, nil)
	return func() { s.controllers.Delete(k) }
}

func (s *schemas) kept() []*kindController {
	var all []*kindController
	for one := range s.controllers.Range {
		if k, is := one.(*kindController); is {
			all = append(all, k)
		}
	}
	return all
}

// follow keeps the views of all kinds up to date until the context ends.
func (s *schemas) follow(ctx context.Context, o *Operator) {
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
		s.refresh(ctx, o)
	}
}

// refresh reads the schemas that have changed. It retries failures at the next tick.
func (s *schemas) refresh(ctx context.Context, o *Operator) {
	kept := s.kept()
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
		if !found || at == k.views.Now().Description.Schema {
			continue
		}
		described, err := kube.Describe(ctx, o.Discovery, k.kind.GVK)
		if err != nil {
			k.reports.Log.Debug("cannot read the changed schema", "error", err)
			continue
		}
		k.changeSchema(described)
	}
}

// applySchema sets how objects are seen by the description of their kind.
func (k *kindController) applySchema(described kube.Description) {
	view := schemaview.New(k.kind, k.settings.Identity, described)
	if view.HidesRecords {
		k.reports.NoFieldForRecords()
	}
	k.views.Set(view)
}

// changeSchema takes over a new description of the kind. No handler runs and nothing is written because of it: running reconciliations
// keep the description that they began with, and later ones fill in the new defaults on both sides of each comparison. The hash of
// a schema covers all kinds of its group, so most new descriptions are equal to the last one; these are not logged.
func (k *kindController) changeSchema(described kube.Description) {
	before := k.views.Now().Description
	k.applySchema(described)
	after := k.views.Now().Description
	if schemaview.Same(before, after) {
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
