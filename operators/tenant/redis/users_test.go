package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// Each node is asked, and what they say becomes one state: a user is absent only where no node has
// it, or where those that have it accept its password, so that it can be put where it is missing; another's mark anywhere keeps us
// off.
func TestTheStateOfAUserIsThatOfAllNodes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	right, wrong := ours()+">first", ours()+">other"
	foreign := "on >first ~acme:* " + names.CacheMark("another owner")
	for name, test := range map[string]struct {
		one, two        string
		tried, notTried credential.State
	}{
		"nowhere":                {"", "", credential.Absent, credential.Absent},
		"as it should be":        {right, right, credential.Accepted, credential.Present},
		"two passwords":          {right + " >second", right, credential.Accepted, credential.Present},
		"one node forgot":        {right, "", credential.Absent, credential.Present},
		"the other node forgot":  {"", right, credential.Absent, credential.Present},
		"another password":       {wrong, wrong, credential.Refused, credential.Present},
		"another on one node":    {right, wrong, credential.Refused, credential.Present},
		"another, and forgotten": {wrong, "", credential.Refused, credential.Present},
		"no password needed":     {right, ours() + "nopass", credential.Refused, credential.Present},
		"off":                    {right + " off", right + " off", credential.Retired, credential.Retired},
		"off on one node":        {right, right + " off", credential.Retired, credential.Retired},
		"another's":              {foreign, foreign, credential.Foreign, credential.Foreign},
		"another's on one node":  {foreign, "", credential.Foreign, credential.Foreign},
		"ours and another's":     {right, foreign, credential.Foreign, credential.Foreign},
		"of two owners":          {right + " " + names.CacheMark("x"), right, credential.Foreign, credential.Foreign},
		"unmarked":               {"on >first ~acme:*", right, credential.Unmarked, credential.Unmarked},
		"foreign and unmarked":   {"on >first ~*", foreign, credential.Foreign, credential.Foreign},
	} {
		for i, rules := range []string{test.one, test.two} {
			f.as(t, f.servers[i], "ACL", "DELUSER", user().Username)
			f.plant(t, f.servers[i], rules)
		}
		f.quiet(t, name, func() {
			tried, err := f.users.Observe(t.Context(), owner(), user().Username, user().Password)
			notTried, errToo := f.users.Observe(t.Context(), owner(), user().Username, credential.Password{})
			if err != nil || errToo != nil || tried != test.tried || notTried != test.notTried {
				t.Errorf("%s: %s and %s without a password, want %s and %s: %v, %v", name, tried, notTried, test.tried, test.notTried, err, errToo)
			}
		})
	}
}

// What ends well has the user on both nodes with the stored password
// alone, and the same again writes nothing; a conflict writes nothing at once.
func TestUsersConvergeToTheStoredCredential(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	right, wrong, foreign := ours()+">first", ours()+">other", "on >first "+names.CacheMark("another owner")
	for name, test := range map[string]struct {
		one, two string
		policy   credential.Policy
		err      error
	}{
		"nowhere":                {},
		"as it should be":        {one: right, two: right},
		"one node forgot":        {one: right},
		"the other node forgot":  {two: right},
		"another password":       {one: wrong, two: right},
		"another, and forgotten": {one: wrong},
		"no password needed":     {one: right, two: ours() + "nopass"},
		"off":                    {one: right + " off", two: right},
		"left drifted":           {one: wrong, two: right, policy: credential.Policy{LeaveDrift: true}, err: credential.ErrDrifted},
		"another's":              {one: foreign, policy: credential.Policy{Adopt: true}, err: credential.ErrConflict},
		"unmarked":               {one: "on >x ~*", err: credential.ErrConflict},
		"unmarked, to be adopted": {
			one: "on >x ~*", two: "on >y ~y:* +@dangerous", policy: credential.Policy{Adopt: true},
		},
	} {
		for i, rules := range []string{test.one, test.two} {
			f.as(t, f.servers[i], "ACL", "DELUSER", user().Username)
			f.plant(t, f.servers[i], rules)
		}
		store := &memory{records: []credential.Record{user()}, published: 1}
		converge := func() {
			if _, err := f.user(store, test.policy).Converge(t.Context()); !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %v", name, err, test.err)
			}
		}
		if test.err != nil {
			f.quiet(t, name, converge)
			continue
		}
		converge()
		_, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
		must(t, err)
		f.lets(t, name, map[string]string{"first": "yes yes", "other": "no no", "x": "no no", "y": "no no"})
		f.quiet(t, name+", once more,", converge)
	}
}

// A record that the store has lost is no reason to give a user on one node another password.
func TestALostRecordIsMissingAlsoWhereOneNodeForgot(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.plant(t, f.servers[0], ours()+">first")
	f.quiet(t, "a lost record", func() {
		if _, err := f.user(&memory{}, credential.Policy{}).Converge(t.Context()); !errors.Is(err, credential.ErrMissing) {
			t.Errorf("it is not missed: %v", err)
		}
	})
}

// Users vanish with a restart where there is no file of ACLs, and come back from the store; where
// there is one they are still there, since each change is saved.
func TestANodeThatForgotIsRepairedAndTheOtherLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.users.Create(t.Context(), owner(), user()))
	must(t, f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second"), Keep: true, Previous: user()}))
	for _, server := range f.servers {
		must(t, server.Stop())
	}
	if state, err := f.users.Observe(t.Context(), owner(), user().Username, user().Password); err == nil || !errors.Is(err, redis.ErrUnreachable) {
		t.Errorf("an outage says %s, %v", state, err)
	}
	for _, server := range f.servers {
		f.start(t, server)
	}
	f.lets(t, "after the restart", map[string]string{"first": "yes no", "second": "yes no"})
	if state := f.observe(t, withPassword("second")); state != credential.Absent {
		t.Fatalf("it is %s", state)
	}
	before := f.writes(t, f.servers[0])
	must(t, f.users.Create(t.Context(), owner(), withPassword("second")))
	if now := f.writes(t, f.servers[0]); now != before {
		t.Errorf("the node that is right was written: %s, before: %s", now, before)
	}
	f.lets(t, "after the repair", map[string]string{"first": "yes yes", "second": "yes yes"})
	if err := f.users.Create(t.Context(), owner(), withPassword("third")); err == nil {
		t.Error("a user that is there is created with another password")
	}
}

// Two passwords on one user, then one; a third has no room; connections survive unless they are
// to be terminated.
func TestARotationHasTwoPasswordsAndThenOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	set := func(password string, previous credential.Record) error {
		return f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword(password), Keep: true, Previous: previous})
	}
	superseded := func(want bool) {
		t.Helper()
		if got, err := f.users.Superseded(t.Context(), owner(), withPassword("second"), nil); err != nil || got.Accepted != want {
			t.Errorf("superseded is %t, %v, want %t", got.Accepted, err, want)
		}
	}
	must(t, f.users.Create(t.Context(), owner(), user()))
	must(t, set("second", user()))
	f.lets(t, "in the overlap", map[string]string{"first": "yes yes", "second": "yes yes"})
	f.quiet(t, "the same again", func() { must(t, set("second", user())) })
	f.quiet(t, "a third password", func() {
		if err := set("third", credential.Record{}); !errors.Is(err, redis.ErrFull) {
			t.Errorf("a third password: %v", err)
		}
		if err := f.users.Retire(t.Context(), owner(), withPassword("third"), nil); !errors.Is(err, credential.ErrUnproven) {
			t.Errorf("to retire all but a password that is not accepted: %v", err)
		}
		superseded(true)
	})
	open := f.servers[0].Client(user().Username, "first")
	t.Cleanup(func() { _ = open.Close() })
	connection := open.Conn()
	must(t, connection.Ping(t.Context()).Err())
	must(t, f.users.Retire(t.Context(), owner(), withPassword("second"), nil))
	superseded(false)
	f.lets(t, "after the overlap", map[string]string{"first": "no no", "second": "yes yes"})
	must(t, connection.Ping(t.Context()).Err())
	f.quiet(t, "to retire again", func() { must(t, f.users.Retire(t.Context(), owner(), withPassword("second"), nil)) })

	must(t, set("third", withPassword("second")))
	f.users.Terminate = true
	must(t, f.users.Retire(t.Context(), owner(), withPassword("third"), nil))
	if err := connection.Ping(t.Context()).Err(); err == nil {
		t.Error("a connection survives that was to be terminated")
	}
	f.lets(t, "in the end", map[string]string{"second": "no no", "third": "yes yes"})
}

// With three passwords to keep, Set drops the unknown one and keeps the Previous.
func TestAStrayPasswordGivesWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.plant(t, f.servers[0], ours()+">first >stray")
	f.plant(t, f.servers[1], ours()+">first")
	must(t, f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second"), Keep: true, Previous: user()}))
	f.lets(t, "then", map[string]string{"first": "yes yes", "second": "yes yes", "stray": "no no"})
	must(t, f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("third")}))
	f.lets(t, "without keeping", map[string]string{"first": "no no", "second": "no no", "third": "yes yes"})
}

// 16 operators at the same time generate what they like; all end with the one that is stored.
func TestSixteenAtTheSameTimeEndWithOnePassword(t *testing.T) {
	t.Parallel()
	f, store := newFixture(t), &memory{}
	results := make(chan string, 16)
	var group sync.WaitGroup
	for range cap(results) {
		group.Go(func() {
			users := f.users
			users.Nodes = f.open(t, credential.NewPassword("operator"))
			made := f.user(store, credential.Policy{})
			made.System = users
			outcome, err := made.Converge(context.Background())
			for errors.Is(err, credential.ErrMissing) { // Another has stored and created it since we have read; an operator tries again.
				outcome, err = made.Converge(context.Background())
			}
			results <- fmt.Sprint(outcome.Password.Reveal(), err)
		})
	}
	group.Wait()
	close(results)
	want := store.records[0].Password.Reveal()
	for result := range results {
		if result != want+"<nil>" {
			t.Errorf("one ends with another password, or: %s", strings.ReplaceAll(result, want, "…"))
		}
	}
	f.lets(t, "in the end", map[string]string{want: "yes yes"})
	f.quiet(t, "once more", func() {
		_, err := f.user(store, credential.Policy{}).Converge(t.Context())
		must(t, err)
	})
}

// Only what is ours is deleted, everywhere, and its connections end.
func TestAUserIsDeletedByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.users.Delete(t.Context(), owner(), user().Username))
	must(t, f.users.Create(t.Context(), owner(), user()))
	open := f.servers[1].Client(user().Username, "first")
	t.Cleanup(func() { _ = open.Close() })
	must(t, open.Ping(t.Context()).Err())
	other := owner()
	other.Name = "acme/other"
	f.quiet(t, "another's deletion", func() {
		if err := f.users.Delete(t.Context(), other, user().Username); !errors.Is(err, credential.ErrConflict) {
			t.Errorf("another deletes it: %v", err)
		}
	})
	f.as(t, f.servers[0], "ACL", "SETUSER", user().Username, "resetkeys", "~x", names.CacheMark("x"))
	f.quiet(t, "the deletion of what is another's on one node", func() {
		if err := f.users.Delete(t.Context(), owner(), user().Username); !errors.Is(err, credential.ErrConflict) {
			t.Errorf("it is deleted where one node has it for another: %v", err)
		}
	})
	f.as(t, f.servers[0], "ACL", "DELUSER", user().Username)
	must(t, f.users.Delete(t.Context(), owner(), user().Username))
	f.lets(t, "after the deletion", map[string]string{"first": "no no"})
	if err := open.Ping(t.Context()).Err(); err == nil {
		t.Error("a connection survives the user")
	}
}

// user is a user of the fixture with a store of its own.
func (f *fixture) user(store *memory, policy credential.Policy) credential.User {
	return credential.User{
		Once:   credential.Once{Store: store, Name: "acme.web.cache", Owner: owner(), Username: user().Username},
		System: f.users, Policy: policy,
	}
}

// memory is a store of one credential.
type memory struct {
	mu        sync.Mutex
	records   []credential.Record
	published int
}

func (m *memory) Create(_ context.Context, _ string, _ credential.Owner, record credential.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.records) >= record.Generation {
		return credential.ErrExists
	}
	m.records = append(m.records, record)
	return nil
}

func (m *memory) Read(context.Context, string, credential.Owner, int) (credential.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return credential.Found{Records: append([]credential.Record(nil), m.records...), Published: m.published}, nil
}

func (*memory) CheckPublish(context.Context, string, credential.Owner, credential.Record) error {
	return nil
}

func (m *memory) Publish(_ context.Context, _ string, _ credential.Owner, record credential.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = record.Generation
	return nil
}

func (*memory) Delete(context.Context, string, credential.Owner) error { return nil }
