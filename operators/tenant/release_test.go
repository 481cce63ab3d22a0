package main

import (
	"testing"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// keepsWhatItCannotReach shows tenant-and-database.md §2, Invariant 3: where the TenantBackend has no database or cache any more, the
// users there are not deleted, so neither are their credentials.
func (s *stage) keepsWhatItCannotReach(t *testing.T) {
	var counts counted
	look := s.look(t, "unreached", &counts)
	look.tenant.Status.Apps = look.run(t.Context()).apps(look.tenant, look.now)
	of := names.Tenant{Name: "unreached"}.App("web")
	db, cache := s.stored(t, of.DatabaseSecret()), s.stored(t, of.CacheSecret())
	whole := *look.backend
	look.databases, look.cache = nil, nil
	look.tenant.Spec.DeletionPolicy = v1.DeletionDelete
	found := look.run(t.Context())
	checkReasons(t, found, row{db: reasonSetUp, cache: reasonSetUp})
	if len(found.findings) != 2 {
		t.Errorf("it tells of %d: %+v", len(found.findings), found.findings)
	}
	look.tenant.Status.Apps = nil // The status is lost too.
	if _, reason := classify(look.remove(t.Context())); reason != reasonSetUp {
		t.Errorf("the tenant's deletion is %q", reason)
	}
	if s.stored(t, of.DatabaseSecret()) != db || s.stored(t, of.CacheSecret()) != cache {
		t.Error("a credential is another")
	}
	*look.backend = whole
	look.tenant.Spec.DropOwned = true
	if err := look.remove(t.Context()); err != nil {
		t.Errorf("with both: %v", err)
	}
	look.databases, look.cache = nil, nil
	if err := look.remove(t.Context()); err != nil {
		t.Errorf("where nothing is left: %v", err)
	}
}
