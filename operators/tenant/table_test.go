package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// counted are the effects of a pass.
type counted struct {
	// Generated is what was stored create-only, Published what readers were given.
	Generated, Published int
	// Roles and Users are what was made or given a password in the database and in the cache.
	Roles, Users int
}

// countingStore counts the writes of a store.
type countingStore struct {
	credential.Store

	counts *counted
	reads  error
}

func (s countingStore) Create(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	err := s.Store.Create(ctx, name, owner, record)
	if err == nil {
		s.counts.Generated++
	}
	return err
}

func (s countingStore) Publish(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	s.counts.Published++
	return s.Store.Publish(ctx, name, owner, record)
}

func (s countingStore) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	if s.reads != nil {
		return credential.Found{}, s.reads
	}
	return s.Store.Read(ctx, name, owner, from)
}

// countingDatabases counts what is made of logins.
type countingDatabases struct {
	databases

	counts *counted
}

func (d countingDatabases) logins(of names.App, limits postgres.Limits, wants v1.App, spec v1.TenantSpec) logins {
	return countingLogins{d.databases.logins(of, limits, wants, spec), d.counts}
}

type countingLogins struct {
	logins

	counts *counted
}

func (l countingLogins) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	l.counts.Roles++
	return l.logins.Create(ctx, owner, record)
}

func (l countingLogins) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	l.counts.Roles++
	return l.logins.Set(ctx, owner, change)
}

// countingCache counts what is made of users.
type countingCache struct {
	cache

	counts *counted
}

func (c countingCache) users(of names.App, wants v1.App, spec v1.TenantSpec) (cacheUsers, string) {
	users, username := c.cache.users(of, wants, spec)
	return countingUsers{users, c.counts}, username
}

type countingUsers struct {
	cacheUsers

	counts *counted
}

func (u countingUsers) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	u.counts.Users++
	return u.cacheUsers.Create(ctx, owner, record)
}

func (u countingUsers) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	u.counts.Users++
	return u.cacheUsers.Set(ctx, owner, change)
}

// state is what a system or the store has of an app before a pass.
type state string

const (
	none      state = "none"
	match     state = "match"     // as the operator has made it
	mismatch  state = "mismatch"  // with another password
	malformed state = "malformed" // a record without a password
	foreign   state = "foreign"   // with the mark of another
	unmarked  state = "unmarked"  // without a mark
)

// row is one line of the decision table.
type row struct {
	// dbRecord and cacheRecord are what the store has, role and user what the systems have.
	dbRecord, cacheRecord, role, user state
	policy                            func(*v1.TenantSpec)
	// db and cache are the reasons, "" for none; unread tells that the store cannot be read.
	db, cache string
	unread    bool
	want      counted
}

// rows are the decision table of docs/concepts/credentials.md, for the whole operator: all sixteen combinations of what exists, and then what is there and wrong. The
// table's writes are our Generated, Roles and Users; Published are the copies for readers.
func rows() []row {
	lost, conflict, invalid := reasonSuspected, reasonConflict, reasonInvalid
	report := func(spec *v1.TenantSpec) { spec.DriftPolicy = v1.DriftReport }
	rotate := func(spec *v1.TenantSpec) { spec.MissingCredentialPolicy = v1.MissingRotate }
	adopt := func(spec *v1.TenantSpec) { spec.AdoptionPolicy = v1.AdoptionAdopt }
	return []row{
		{none, none, none, none, nil, "", "", false, counted{2, 2, 1, 1}},
		{match, match, none, none, nil, "", "", false, counted{0, 0, 1, 1}},
		{match, match, match, none, nil, "", "", false, counted{0, 0, 0, 1}},
		{match, match, none, match, nil, "", "", false, counted{0, 0, 1, 0}},
		{match, match, match, match, nil, "", "", false, counted{}},
		{match, match, mismatch, mismatch, nil, "", "", false, counted{0, 0, 1, 1}},
		{match, match, mismatch, mismatch, report, reasonDrifted, reasonDrifted, false, counted{}},
		{none, none, match, none, nil, lost, "", false, counted{1, 1, 0, 1}},
		{none, none, none, match, nil, "", lost, false, counted{1, 1, 1, 0}},
		{none, none, match, match, nil, lost, lost, false, counted{}},
		{match, none, none, none, nil, "", "", false, counted{1, 1, 1, 1}},
		{match, none, match, none, nil, "", "", false, counted{1, 1, 0, 1}},
		{match, none, none, match, nil, "", lost, false, counted{0, 0, 1, 0}},
		{match, none, match, match, nil, "", lost, false, counted{}},
		{none, match, none, none, nil, "", "", false, counted{1, 1, 1, 1}},
		{none, match, match, none, nil, lost, "", false, counted{0, 0, 0, 1}},
		{none, match, none, match, nil, "", "", false, counted{1, 1, 1, 0}},
		{none, match, match, match, nil, lost, "", false, counted{}},
		{none, none, match, match, rotate, "", "", false, counted{2, 2, 1, 1}},
		{malformed, malformed, match, match, rotate, invalid, invalid, false, counted{}},
		{malformed, malformed, none, none, rotate, invalid, invalid, false, counted{}},
		{foreign, foreign, none, none, rotate, conflict, conflict, false, counted{}},
		{match, match, foreign, foreign, adopt, conflict, conflict, false, counted{}},
		{none, none, foreign, foreign, adopt, conflict, conflict, false, counted{}},
		{match, match, unmarked, unmarked, nil, conflict, conflict, false, counted{}},
		{match, match, unmarked, unmarked, adopt, "", "", false, counted{0, 0, 1, 1}},
		{none, none, none, none, nil, reasonUnknown, reasonUnknown, true, counted{}},
		{none, none, match, match, rotate, reasonUnknown, reasonUnknown, true, counted{}},
	}
}

// What was generated and written, what is
// said, who can log in; and that another pass writes nothing.
func TestTheDecisionTable(t *testing.T) {
	t.Parallel()
	// It creates no Tenants, so that the operator of TestNoClientIsLockedOut leaves its credentials alone.
	s := sharedStage(t, "table-", func(tenant string) bool { return tenant != storyTenant })
	for i, row := range rows() {
		name := fmt.Sprintf("records %s %s, role %s, user %s", row.dbRecord, row.cacheRecord, row.role, row.user)
		t.Run(name, func(t *testing.T) { s.decides(t, fmt.Sprintf("row%d", i), row) })
	}
	t.Run("the backend has a system no more", s.keepsWhatItCannotReach)
	t.Run("an app that nothing lists any more", s.forgetsNothing)
	t.Run("an app that is taken out while the status is lost", s.losesTheStatus)
	t.Run("a database that others own", s.sold)
	t.Run("scripts", s.allowsScripts)
	t.Run("an app that is listed again", s.listsAgain)
	t.Run("the forms of marks", s.keepsForms)
}

func (s *stage) decides(t *testing.T, name string, row row) {
	var counts counted
	look := s.look(t, name, &counts)
	if first := look.run(t.Context()); first.failure() != nil || counts != (counted{2, 2, 1, 1}) {
		t.Fatalf("it does not begin: %v, %+v", first.failure(), counts)
	}
	of := names.Tenant{Name: name}.App("web")
	db, cache := s.stored(t, of.DatabaseSecret()), s.stored(t, of.CacheSecret())
	s.setRecord(t, of.DatabaseSecret(), row.dbRecord)
	s.setRecord(t, of.CacheSecret(), row.cacheRecord)
	s.setRole(t, look, of, row.role)
	s.setUser(t, look, of, row.user)
	if row.policy != nil {
		row.policy(&look.tenant.Spec)
	}
	if look.tenant.Spec.MissingCredentialPolicy == v1.MissingRotate { // It acts on what has been missing for a minute.
		missing := &v1.Principal{MissingSince: &metav1.Time{Time: look.now.Add(-missingFor)}, MissingLooks: missesNeeded}
		look.tenant.Status.Apps = []v1.AppStatus{{Name: "web", Database: missing, Cache: missing}}
	}
	if row.unread {
		look.store.Store = countingStore{look.store.Store, &counts, errors.New("AccessDeniedException: not authorized")}
	}
	counts = counted{}
	found := look.run(t.Context())
	if diff := cmp.Diff(row.want, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkReasons(t, found, row)
	counts = counted{}
	if again := look.run(t.Context()); counts != (counted{}) {
		t.Errorf("the next pass writes %+v", counts)
	} else {
		checkReasons(t, again, row)
	}
	s.checkLogins(t, name, row, db, cache)
}

func checkReasons(t *testing.T, found report, row row) {
	t.Helper()
	for _, one := range found.findings {
		want := row.db
		if one.system == caching {
			want = row.cache
		}
		if _, reason := classify(one.worst()); reason != want {
			t.Errorf("the %s is %q, want %q: %v", one.system, reason, want, one.worst())
		}
	}
}

// checkLogins shows that readers can log in with what is stored where all is well, and that the holder of a password that was not to be
// replace still can.
func (s *stage) checkLogins(t *testing.T, name string, row row, db, cache credential.Record) {
	t.Helper()
	of := names.Tenant{Name: name}.App("web")
	if row.db == "" {
		db = s.stored(t, of.DatabaseSecret())
	}
	if row.cache == "" {
		cache = s.stored(t, of.CacheSecret())
	}
	if row.db == "" || row.role == match {
		if err := s.logIn(t, name, db); err != nil {
			t.Errorf("login to the database: %v", err)
		}
	}
	if row.cache == "" || row.user == match {
		if err := s.authenticate(t, cache, name+":x"); err != nil {
			t.Errorf("login to the cache: %v", err)
		}
	}
}

// look is a pass over a tenant with one app, which counts.
func (s *stage) look(t *testing.T, name string, counts *counted) *pass {
	t.Helper()
	api := s.Client
	declared, err := read(t.Context(), api, s.backend)
	if err != nil {
		t.Fatal(err)
	}
	held, err := new(connector).connect(t.Context(), declared, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.close(); err != nil {
			t.Error(err)
		}
	})
	held.store.Store = countingStore{Store: held.store.Store, counts: counts}
	held.databases, held.cache = countingDatabases{held.databases, counts}, countingCache{held.cache, counts}
	tenant := tenantOf(name)
	tenant.Spec.Apps[0].Database.Access, tenant.Spec.Apps[0].Cache.Profile = v1.AccessOwner, v1.AccessReadWrite
	return &pass{backend: held, tenant: tenant, seen: &observations{}, now: time.Now()}
}

// setRecord makes the store have something else under a name.
func (s *stage) setRecord(t *testing.T, name string, to state) {
	t.Helper()
	if to == match {
		return
	}
	for _, one := range []string{name, name + ".g1"} {
		secret := &corev1.Secret{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: credentialsNamespace, Name: one}, secret); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Annotations: secret.Annotations}
		switch to {
		case none:
			continue
		case malformed:
			delete(secret.Data, credential.PasswordKey)
		case foreign:
			secret.Annotations = map[string]string{credential.OwnerAnnotation: "another@owner//"}
		case match, mismatch, unmarked:
			t.Fatalf("a record is never %s", to)
		}
		s.make(t, secret)
	}
}

// setRole makes the database have something else of an app.
func (s *stage) setRole(t *testing.T, look *pass, of names.App, to state) {
	t.Helper()
	login := of.Logins()[0]
	switch to {
	case match:
	case none:
		if err := look.dropLogins(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	case mismatch:
		s.sql(t, "ALTER ROLE "+login+" PASSWORD 'another'")
	case foreign:
		s.sql(t, "COMMENT ON ROLE "+login+" IS 'another@owner//'")
	case unmarked:
		s.sql(t, "COMMENT ON ROLE "+login+" IS NULL")
	case malformed:
		t.Fatal("a role is never malformed")
	}
}

// setUser makes the cache have something else of an app.
func (s *stage) setUser(t *testing.T, look *pass, of names.App, to state) {
	t.Helper()
	rule := map[state][]string{
		mismatch: {"resetpass", ">another"},
		foreign:  {"resetkeys", names.CacheMark("another@owner//"), "~" + of.Tenant + ":*"},
		unmarked: {"resetkeys", "~" + of.Tenant + ":*"},
	}
	switch {
	case to == none:
		if err := look.dropUser(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	case rule[to] != nil:
		admin := s.redis.Admin()
		defer func() { _ = admin.Close() }()
		if err := admin.ACLSetUser(t.Context(), of.RedisUser(), rule[to]...).Err(); err != nil {
			t.Fatal(err)
		}
	case to != match:
		t.Fatalf("a user is never %s", to)
	}
}
