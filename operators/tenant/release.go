package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// abandon is the annotation with which a person gives up a deleted Tenant whose resources cannot be removed.
const abandon = "tenant.einmal.dev/abandon"

// release removes the resources of a deleted Tenant if its deletionPolicy is Delete: first the users, so that logins are rejected, and last
// the credentials, so that an interrupted deletion can continue. If something cannot be removed, the Tenant stays.
func (p *provisioner) release(ctx context.Context, c *change) error {
	switch {
	case c.Object.Spec.DeletionPolicy != v1.DeletionDelete:
		c.Log.Info("resources of the tenant are kept, deletionPolicy is Retain")
		return nil
	case c.Object.Annotations[abandon] == "true":
		c.Event(einmal.EventWarning, "Abandoned", "The annotation %s is set: remaining resources of the tenant are not removed.", abandon)
		return nil
	}
	held, release, err := p.backends.work(ctx, c.Client, c.Object.Spec.BackendRef.Name)
	if wait, ok := turnOf(err); ok {
		return einmal.RequeueAfter(wait)
	}
	if err == nil {
		defer release()
		err = (&pass{backend: held, tenant: c.Object}).remove(ctx)
	}
	if err == nil {
		return nil
	}
	setDeleting(c.Object, err)
	if class, _ := classify(err); class == waiting {
		return einmal.RequeueAfter(einmal.Memo[observations](c).nextSettling())
	}
	return err
}

// remove removes all resources of the tenant. It finds them by their ownership marks, so that it does not depend on the status. A system that
// does not answer does not keep logins in the others: only the roles and the credentials wait until all users are gone. A database that is to be dropped goes
// when all logins are closed.
func (p *pass) remove(ctx context.Context) error {
	known, err := p.everyApp(ctx)
	if err != nil {
		err = fmt.Errorf("find the resources of the tenant: %w", err)
	}
	failed := []error{err}
	for _, app := range known { // No app keeps a login because another one holds up its deletion.
		p.shutLogins(ctx, names.Tenant{Name: p.tenant.Name}.App(app))
	}
	of := names.Tenant{Name: p.tenant.Name}
	if p.databases != nil && err == nil {
		_ = p.databases.tenant(of, p.tenant.Spec).DeleteDatabase(ctx, p.owner(names.App{Tenant: of.Name})) // Delete returns the error again.
	}
	for _, app := range known {
		failed = append(failed, p.dropLogins(ctx, of.App(app)), p.dropUser(ctx, of.App(app)))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if p.databases != nil {
		if err := p.databases.tenant(of, p.tenant.Spec).Delete(ctx, p.owner(names.App{Tenant: of.Name})); err != nil {
			return err
		}
	}
	for _, app := range known {
		of := names.Tenant{Name: p.tenant.Name}.App(app)
		failed = append(failed, p.store.Delete(ctx, p.store.database(of), p.owner(of)), p.store.Delete(ctx, p.store.cache(of), p.owner(of)))
	}
	return errors.Join(failed...)
}

// shutUnwanted makes the database reject the logins of apps that are not in the spec any more, before anything is asked that a tenant can hold up.
// unwanted returns its errors again.
func (p *pass) shutUnwanted(ctx context.Context) {
	if p.tenant.Spec.DeletionPolicy != v1.DeletionDelete {
		return
	}
	for _, was := range p.tenant.Status.Apps {
		app, stays := p.wanted(was.Name)
		if was.Database != nil && (!stays || !p.hasDatabase(app)) {
			p.shutLogins(ctx, names.Tenant{Name: p.tenant.Name}.App(was.Name))
		}
	}
}

// unwanted removes the resources of apps that are not in the spec any more, and returns what it could not remove.
func (p *pass) unwanted(ctx context.Context) []finding {
	wanted := map[string]v1.App{}
	for _, app := range p.tenant.Spec.Apps {
		wanted[app.Name] = app
	}
	var left []finding
	for _, was := range p.known(ctx) {
		app, stays := wanted[was.Name]
		of := names.Tenant{Name: p.tenant.Name}.App(was.Name)
		if was.Database != nil && (!stays || !p.hasDatabase(app)) {
			err := p.takeBack(ctx, p.dropLogins, of, p.store.database(of))
			left = append(left, finding{app: was.Name, system: database, err: err, unwanted: true})
		}
		if was.Cache != nil && (!stays || !p.hasCache(app)) {
			err := p.takeBack(ctx, p.dropUser, of, p.store.cache(of))
			left = append(left, finding{app: was.Name, system: caching, err: err, unwanted: true})
		}
	}
	return slices.DeleteFunc(left, func(of finding) bool { return of.err == nil })
}

// known returns the apps that the status lists. If the status is lost and the spec was changed since the Tenant was created, an app may have been
// taken out: then known also returns the apps whose logins, users or credentials carry the mark of the tenant. It does not do so for a Tenant
// that was created again: what an earlier Tenant has left may be in use, and the spec may get that app later.
func (p *pass) known(ctx context.Context) []v1.AppStatus {
	all := slices.Clone(p.tenant.Status.Apps)
	if p.tenant.Status.ObservedGeneration == 0 && p.tenant.Generation > 1 {
		p.seen.search = true
	}
	if !p.seen.search {
		return all
	}
	found, err := p.everyApp(ctx)
	p.seen.search = err != nil // What does not answer is reported by the checks of the apps.
	for _, name := range found {
		listed := slices.ContainsFunc(all, func(app v1.AppStatus) bool { return app.Name == name })
		if _, stays := p.wanted(name); !listed && !stays {
			all = append(all, v1.AppStatus{Name: name, Database: &v1.Principal{}, Cache: &v1.Principal{}})
		}
	}
	return all
}

// takeBack removes the user of an app in a system, and then the credential.
func (p *pass) takeBack(ctx context.Context, drop func(context.Context, names.App) error, of names.App, record string) error {
	if err := drop(ctx, of); err != nil {
		return err
	}
	return p.store.Delete(ctx, record, p.owner(of))
}

// shutLogins closes the logins of an app and ends their sessions. dropLogins returns its errors again.
func (p *pass) shutLogins(ctx context.Context, of names.App) {
	if p.databases == nil {
		return
	}
	both := of.Logins()
	_ = p.unlimited(of).Shut(ctx, p.owner(of), both[:]...)
}

// unlimited returns the logins of an app that are to be removed.
func (p *pass) unlimited(of names.App) logins {
	return p.databases.logins(of, postgres.Limits{}, v1.App{Name: of.Name}, p.tenant.Spec)
}

// dropLogins drops the logins of an app and ends their sessions.
func (p *pass) dropLogins(ctx context.Context, of names.App) error {
	if p.databases == nil {
		return p.unreached(ctx, of, "postgres", p.store.database(of))
	}
	both := of.Logins()
	if err := p.unlimited(of).Delete(ctx, p.owner(of), both[:]...); err != nil {
		return fmt.Errorf("app %s: %w", of.Name, err)
	}
	return nil
}

// dropUser deletes the cache user of an app.
func (p *pass) dropUser(ctx context.Context, of names.App) error {
	if p.cache == nil {
		return p.unreached(ctx, of, "cache", p.store.cache(of))
	}
	system, username := p.cache.users(of, v1.App{Name: of.Name}, p.tenant.Spec)
	if err := system.Delete(ctx, p.owner(of), username); err != nil {
		return fmt.Errorf("app %s: %w", of.Name, err)
	}
	return nil
}

// unreached returns an error if there is a credential for a system that the backend does not name any more. The user may still exist there,
// and its credential must not be deleted before it.
func (p *pass) unreached(ctx context.Context, of names.App, field, record string) error {
	found, err := p.store.Read(ctx, record, p.owner(of), 1)
	if err == nil && len(found.Records) > 0 {
		err = fmt.Errorf("credential %s exists, but its user cannot be deleted because TenantBackend %s has no spec.%s: %w; restore that field, "+
			"or delete the user and the credential manually", p.store.prefix+record, p.tenant.Spec.BackendRef.Name, field, errSetUp)
	}
	if err != nil {
		return fmt.Errorf("app %s: %w", of.Name, err)
	}
	return nil
}
