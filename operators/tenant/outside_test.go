package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// outside are a database server and a cache in memory, which outlive the processes of the operator. In the database a login has one
// password, in the cache a user has up to two. The lock is never held while anybody waits.
type outside struct {
	mu sync.Mutex
	// shared has the marks of what the apps of a tenant share.
	shared map[string]string
	users  map[system]*credentialtest.Users
}

func newOutside() *outside {
	return &outside{shared: map[string]string{}, users: map[system]*credentialtest.Users{
		database: {Name: string(database)}, caching: {Name: string(caching), Room: 2},
	}}
}

// complaints are of those who were locked out so far.
func (o *outside) complaints() []string {
	return slices.Concat(o.users[database].Broken(), o.users[caching].Broken())
}

// there are the names of all that there is, in order.
func (o *outside) there() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Collect(maps.Keys(o.shared))
	for in, users := range o.users {
		for _, name := range users.Names() {
			all = append(all, string(in)+" "+name)
		}
	}
	slices.Sort(all)
	return all
}

// session is how a process of the operator sees the systems outside: each write can go wrong, before or after it.
type session struct {
	*outside

	process *einmaltest.Process
}

// of are the users in one of the systems, with the limits or the access that they are to have.
func (s session) of(in system, wanted string) credentialtest.Session {
	return credentialtest.Session{Users: s.users[in], Effect: s.process.IdempotentEffect, Grants: wanted}
}

// write makes a change of what apps share.
func (s session) write(name string, change func() error) error {
	return s.process.IdempotentEffect(name, func() (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, change()
	})
}

// connect is what the operator calls to prepare the connections of a backend, with the real store of Secrets, or one that is made of it.
func (s session) connect(wrap func(credential.Store) credential.Store) func(context.Context, declaration, client.Client) (*backend, error) {
	return func(_ context.Context, d declaration, api client.Client) (*backend, error) {
		return &backend{
			clusterID: d.clusterID, plans: d.Spec.Plans,
			store: store{
				Store:    wrap(credential.Secrets{Client: api, Namespace: d.Spec.Store.Secret.Namespace}),
				database: names.App.DatabaseSecret, cache: names.App.CacheSecret, apps: secretApps(api, d.Spec.Store.Secret.Namespace),
			},
			databases: outsideDatabases{s}, cache: outsideCache{s},
		}, nil
	}
}

// outsideDatabases are databases.
type outsideDatabases struct{ session }

func (d outsideDatabases) tenant(of names.Tenant, spec v1.TenantSpec) sharedDatabase {
	return outsideTenant{d.session, []string{"role " + of.Owner(), "role " + of.ReadWrite(), "database of " + of.Database()}, spec.DropOwned}
}

func (d outsideDatabases) logins(_ names.App, limits postgres.Limits, _ v1.App, _ v1.TenantSpec) logins {
	return outsideLogins{d.of(database, fmt.Sprintf("%+v", limits))}
}

// outsideLogins are logins to a database.
type outsideLogins struct{ credentialtest.Session }

// Shut closes the owner's logins.
func (l outsideLogins) Shut(ctx context.Context, owner credential.Owner, usernames ...string) error {
	for _, username := range usernames {
		state, err := l.Observe(ctx, owner, username, credential.Password{})
		if err != nil {
			return err
		}
		if state != credential.Present {
			continue
		}
		if err := l.Effect("close "+username, func() (any, error) { l.Disable(username); return nil, nil }); err != nil {
			return err
		}
	}
	return nil
}

// apps looks at the marks of the logins that could be those of a tenant's apps.
func (d outsideDatabases) apps(ctx context.Context, owner credential.Owner) ([]string, error) {
	var found []string
	for _, username := range d.outside.users[database].Names() {
		name, is := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(username, "_a"), "_b"), "t_"+owner.Name+"_")
		if is && d.marked(ctx, database, username, credential.Owner{Operator: owner.Operator, Name: owner.Name + "/" + name}) {
			found = append(found, name)
		}
	}
	return found, nil
}

// marked reports whether a user carries the mark of an owner.
func (s session) marked(ctx context.Context, in system, username string, owner credential.Owner) bool {
	state, err := s.of(in, "").Observe(ctx, owner, username, credential.Password{})
	return err == nil && (state == credential.Present || state == credential.Retired)
}

func (outsideDatabases) check(context.Context) error { return nil }

func (outsideDatabases) close() {}

// outsideTenant is what the apps of a tenant share: it is made in the order of its names, and removed the other way round.
type outsideTenant struct {
	session

	names     []string
	dropOwned bool
}

func (t outsideTenant) Converge(_ context.Context, owner credential.Owner) (bool, error) {
	wrote := false
	for _, name := range t.names {
		mark, there := t.markOf(name)
		if there && mark != owner.String() {
			return wrote, credential.ErrConflict
		}
		if there {
			continue
		}
		err := t.write("make the "+name, func() error {
			if _, there := t.shared[name]; there {
				return credential.ErrExists
			}
			t.shared[name] = owner.String()
			return nil
		})
		if err != nil {
			return wrote, err
		}
		wrote = true
	}
	return wrote, nil
}

func (t outsideTenant) markOf(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mark, there := t.shared[name]
	return mark, there
}

func (t outsideTenant) Delete(_ context.Context, owner credential.Owner) error {
	return t.drop(owner, t.names)
}

func (t outsideTenant) DeleteDatabase(_ context.Context, owner credential.Owner) error {
	if !t.dropOwned {
		return nil
	}
	return t.drop(owner, t.names[len(t.names)-1:])
}

func (t outsideTenant) drop(owner credential.Owner, what []string) error {
	for _, name := range slices.Backward(what) {
		mark, there := t.markOf(name)
		if !there {
			continue
		}
		if mark != owner.String() {
			return credential.ErrConflict
		}
		if err := t.write("drop the "+name, func() error { delete(t.shared, name); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// outsideCache is a cache.
type outsideCache struct{ session }

func (c outsideCache) users(of names.App, wants v1.App, _ v1.TenantSpec) (cacheUsers, string) {
	return outsideUsers{c.of(caching, string(wants.Cache.Profile))}, of.RedisUser()
}

// apps looks at the names and the marks of all users.
func (c outsideCache) apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	var found []string
	for _, username := range c.outside.users[caching].Names() {
		if app, is := of.AppOfRedisUser(username); is && c.marked(ctx, caching, username, owner(app)) {
			found = append(found, app.Name)
		}
	}
	return found, nil
}

func (outsideCache) forgetful(context.Context) ([]string, error) { return nil, nil }

func (outsideCache) check(context.Context) error { return nil }

func (outsideCache) close() error { return nil }

// outsideUsers are users of the cache.
type outsideUsers struct{ credentialtest.Session }

func (u outsideUsers) ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	return u.Converge(ctx, owner, username)
}

func (u outsideUsers) Delete(ctx context.Context, owner credential.Owner, username string) error {
	return u.Session.Delete(ctx, owner, username)
}
