package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

var errHeld = errors.New("another session holds the lock")

// stuckDatabases are databases in which no login can be dropped and nothing can be converged. They note what is called.
type stuckDatabases struct {
	databases

	calls *[]string
}

func (s stuckDatabases) tenant(names.Tenant, v1.TenantSpec) sharedDatabase { return s }

func (s stuckDatabases) logins(_ names.App, _ postgres.Limits, wants v1.App, _ v1.TenantSpec) logins {
	return stuckLogins{calls: s.calls, app: wants.Name}
}

func (s stuckDatabases) Converge(context.Context, credential.Owner) (bool, error) {
	*s.calls = append(*s.calls, "converge")
	return false, errHeld
}

func (s stuckDatabases) DeleteDatabase(context.Context, credential.Owner) error {
	*s.calls = append(*s.calls, "drop the database")
	return errHeld
}

func (s stuckDatabases) Delete(context.Context, credential.Owner) error { return errHeld }

func (s stuckDatabases) apps(context.Context, credential.Owner) ([]string, error) {
	return []string{"one", "two"}, nil
}

type stuckLogins struct {
	logins

	calls *[]string
	app   string
}

func (s stuckLogins) Shut(_ context.Context, _ credential.Owner, usernames ...string) error {
	*s.calls = append(*s.calls, fmt.Sprintf("shut %d of %s", len(usernames), s.app))
	return nil
}

func (s stuckLogins) Delete(context.Context, credential.Owner, ...string) error {
	*s.calls = append(*s.calls, "drop "+s.app)
	return errHeld
}

// stuck is a pass over a tenant with the two apps in its status, in databases that are stuck.
func stuck(spec ...v1.App) (*pass, *[]string) {
	calls := &[]string{}
	tenant := &v1.Tenant{}
	tenant.Name, tenant.Spec.DeletionPolicy, tenant.Spec.Apps = "acme", v1.DeletionDelete, spec
	for _, name := range []string{"one", "two"} {
		tenant.Status.Apps = append(tenant.Status.Apps, v1.AppStatus{Name: name, Database: &v1.Principal{Generation: 1}})
	}
	held := &backend{databases: stuckDatabases{calls: calls}}
	held.store.apps = func(context.Context, names.Tenant, func(names.App) credential.Owner) ([]string, error) {
		return nil, nil
	}
	held.store.database, held.store.cache = names.App.DatabaseSecret, names.App.CacheSecret
	held.store.Store = emptyStore{}
	return &pass{backend: held, tenant: tenant, seen: &observations{}}, calls
}

// emptyStore has no credential.
type emptyStore struct{ credential.Store }

func (emptyStore) Read(context.Context, string, credential.Owner, int) (credential.Found, error) {
	return credential.Found{}, nil
}

// A login that cannot be dropped keeps no login of another app open. The database goes before the logins, so that what they own in it need not be handed over.
func TestAllLoginsAreClosedBeforeOneIsDropped(t *testing.T) {
	t.Parallel()
	look, calls := stuck()
	if err := look.remove(t.Context()); !errors.Is(err, errHeld) {
		t.Errorf("got %v", err)
	}
	if want := []string{"shut 2 of one", "shut 2 of two", "drop the database", "drop one", "drop two"}; !slices.Equal(*calls, want) {
		t.Errorf("it called %q, want %q", *calls, want)
	}
}

// An app that was taken out of the spec loses its logins before the operator waits for anything that a tenant can hold up.
func TestTheLoginsOfAnAppThatWasTakenOutAreClosedFirst(t *testing.T) {
	t.Parallel()
	look, calls := stuck(v1.App{Name: "three"})
	look.run(t.Context())
	if want := []string{"shut 2 of one", "shut 2 of two", "converge", "drop one", "drop two"}; !slices.Equal(*calls, want) {
		t.Errorf("it called %q, want %q", *calls, want)
	}
}
