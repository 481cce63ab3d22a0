package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// outside are a database server and a cache in memory, which outlive the processes of the operator. In the database a login has one
// password, in the cache a user has up to two. The lock is never held while anybody waits.
type outside struct {
	mu sync.Mutex
	// shared has the marks of what the apps of a tenant share, accounts who can log in, by "database NAME" and "cache NAME".
	shared   map[string]string
	accounts map[string]*account
	// promises are the passwords that have to be accepted, and broken those that were not, after some effect.
	promises []promise
	broken   []string
}

// account is a login of the database or a user of the cache.
type account struct {
	mark, limits string
	passwords    []string
	retired      bool
}

func (a *account) accepts(password string) bool {
	return a != nil && !a.retired && slices.Contains(a.passwords, password)
}

// promise is that somebody can log in until a time.
type promise struct {
	account, password string
	until             time.Time
}

// promise expects that a password is accepted after each effect until a time.
func (o *outside) promise(made promise) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.promises = append(slices.DeleteFunc(o.promises, func(old promise) bool {
		return old.account == made.account && old.password == made.password
	}), made)
}

func (o *outside) lets(account, password string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accounts[account].accepts(password)
}

// complaints are of those who were locked out so far.
func (o *outside) complaints() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.broken)
}

// there are the names of all that there is, in order.
func (o *outside) there() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(o.shared)), slices.Collect(maps.Keys(o.accounts)))))
}

// limits are those of an account.
func (o *outside) limits(of string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.accounts[of]; known != nil {
		return known.limits
	}
	return "there is none"
}

// session is how a process of the operator sees the systems outside: each write can go wrong, before or after it.
type session struct {
	*outside

	process *einmaltest.Process
}

// write makes a change, and looks whether those who were promised it can log in then. The value tells changes apart.
func (s session) write(name string, value any, change func() error) error {
	return s.process.Effect(name, func() (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := change(); err != nil {
			return nil, err
		}
		for _, made := range s.promises {
			if time.Now().Before(made.until) && !s.accounts[made.account].accepts(made.password) {
				s.broken = append(s.broken, name+" locks out "+made.account)
			}
		}
		return value, nil
	})
}

// connect is what the operator calls to prepare the connections of a backend, with the real store of Secrets, or one that is made of it.
func (s session) connect(wrap func(credential.Store) credential.Store) func(context.Context, declaration, client.Client) (*backend, error) {
	return func(_ context.Context, d declaration, api client.Client) (*backend, error) {
		return &backend{
			clusterID: d.clusterID, plans: d.Spec.Plans,
			store: store{
				Store:    wrap(credential.Secrets{Client: api, Namespace: d.Spec.Store.Secret.Namespace}),
				database: names.App.DatabaseSecret, cache: names.App.CacheSecret,
			},
			databases: outsideDatabases{s}, cache: outsideCache{s},
		}, nil
	}
}

// outsideDatabases are databases.
type outsideDatabases struct{ session }

func (d outsideDatabases) tenant(of names.Tenant, _ v1.TenantSpec) sharedDatabase {
	return outsideTenant{d.session, []string{"role " + of.Owner(), "role " + of.ReadWrite(), "database of " + of.Database()}}
}

func (d outsideDatabases) logins(_ names.App, limits postgres.Limits, _ v1.App, _ v1.TenantSpec) logins {
	return outsideLogins{outsideAccounts{d.session, database, 1, fmt.Sprintf("%+v", limits)}}
}

func (outsideDatabases) check(context.Context) error { return nil }

func (outsideDatabases) close() {}

// outsideTenant is what the apps of a tenant share: it is made in the order of its names, and removed the other way round.
type outsideTenant struct {
	session

	names []string
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
		err := t.write("make the "+name, nil, func() error {
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
	for _, name := range slices.Backward(t.names) {
		mark, there := t.markOf(name)
		if !there {
			continue
		}
		if mark != owner.String() {
			return credential.ErrConflict
		}
		if err := t.write("drop the "+name, nil, func() error { delete(t.shared, name); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// outsideCache is a cache.
type outsideCache struct{ session }

func (c outsideCache) users(of names.App, wants v1.App, _ v1.TenantSpec) (cacheUsers, string) {
	return outsideUsers{outsideAccounts{c.session, caching, 2, string(wants.Cache.Profile)}}, of.RedisUser()
}

func (outsideCache) check(context.Context) error { return nil }

func (outsideCache) close() error { return nil }

// outsideAccounts are accounts in one of the systems.
type outsideAccounts struct {
	session

	in system
	// room is how many passwords an account has at most, wanted the limits or the access that it is to have.
	room   int
	wanted string
}

func (a outsideAccounts) key(username string) string { return string(a.in) + " " + username }

// Observe tells what there is of a user.
func (a outsideAccounts) Observe(_ context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.accounts[a.key(username)]
	switch {
	case known == nil:
		return credential.Absent, nil
	case known.mark != owner.String():
		return credential.Foreign, nil
	case known.retired:
		return credential.Retired, nil
	case password.IsZero():
		return credential.Present, nil
	case known.accepts(password.Reveal()):
		return credential.Accepted, nil
	default:
		return credential.Refused, nil
	}
}

// Create makes a user.
func (a outsideAccounts) Create(_ context.Context, owner credential.Owner, record credential.Record) error {
	return a.write("give a password to "+a.key(record.Username), record.Password.Reveal(), func() error {
		if a.accounts[a.key(record.Username)] != nil {
			return credential.ErrExists
		}
		a.accounts[a.key(record.Username)] = &account{mark: owner.String(), limits: a.wanted, passwords: []string{record.Password.Reveal()}}
		return nil
	})
}

// Set gives a user a password.
func (a outsideAccounts) Set(_ context.Context, owner credential.Owner, change credential.Assignment) error {
	return a.write("give a password to "+a.key(change.Username), change.Password.Reveal(), func() error {
		known := a.accounts[a.key(change.Username)]
		if known == nil || known.mark != owner.String() {
			return credential.ErrConflict
		}
		if !change.Keep || a.room == 1 {
			known.passwords = nil
		}
		if !slices.Contains(known.passwords, change.Password.Reveal()) {
			known.passwords = append(known.passwords, change.Password.Reveal())
		}
		if known.retired = false; len(known.passwords) > a.room {
			return errors.New("it has no room for another password")
		}
		return nil
	})
}

// Superseded tells whether anything is accepted beside a record.
func (a outsideAccounts) Superseded(_ context.Context, _ credential.Owner, current credential.Record, others []string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, other := range others {
		if known := a.accounts[a.key(other)]; known != nil && !known.retired {
			return true, nil
		}
	}
	known := a.accounts[a.key(current.Username)]
	return known != nil && len(known.passwords) > 1, nil
}

// Retire takes out of use what is accepted beside a record.
func (a outsideAccounts) Retire(_ context.Context, _ credential.Owner, current credential.Record, others []string) error {
	return a.write("retire what was before "+a.key(current.Username), current.Generation, func() error {
		known := a.accounts[a.key(current.Username)]
		if !known.accepts(current.Password.Reveal()) {
			return credential.ErrUnproven
		}
		known.passwords = []string{current.Password.Reveal()}
		for _, other := range others {
			if known := a.accounts[a.key(other)]; known != nil {
				known.retired = true
			}
		}
		return nil
	})
}

// level gives users the limits that they are to have.
func (a outsideAccounts) level(owner credential.Owner, usernames ...string) (bool, error) {
	wrote := false
	for _, username := range usernames {
		state, err := a.Observe(context.Background(), owner, username, credential.Password{})
		if is := a.limits(a.key(username)); err != nil || state == credential.Absent || state == credential.Foreign || is == a.wanted {
			continue
		}
		err = a.write("limit "+a.key(username), a.wanted, func() error {
			if known := a.accounts[a.key(username)]; known != nil {
				known.limits = a.wanted
			}
			return nil
		})
		if err != nil {
			return wrote, err
		}
		wrote = true
	}
	return wrote, nil
}

// remove removes users.
func (a outsideAccounts) remove(owner credential.Owner, usernames ...string) error {
	for _, username := range usernames {
		state, err := a.Observe(context.Background(), owner, username, credential.Password{})
		switch {
		case err != nil:
			return err
		case state == credential.Absent:
			continue
		case state == credential.Foreign:
			return credential.ErrConflict
		}
		err = a.write("remove "+a.key(username), nil, func() error { delete(a.accounts, a.key(username)); return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// outsideLogins are logins of the database.
type outsideLogins struct{ outsideAccounts }

func (l outsideLogins) Converge(_ context.Context, owner credential.Owner, usernames ...string) (bool, error) {
	return l.level(owner, usernames...)
}

func (l outsideLogins) Delete(_ context.Context, owner credential.Owner, usernames ...string) error {
	return l.remove(owner, usernames...)
}

// outsideUsers are users of the cache.
type outsideUsers struct{ outsideAccounts }

func (u outsideUsers) ConvergeAccess(_ context.Context, owner credential.Owner, username string) (bool, error) {
	return u.level(owner, username)
}

func (u outsideUsers) Delete(_ context.Context, owner credential.Owner, username string) error {
	return u.remove(owner, username)
}
