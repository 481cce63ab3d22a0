package main

import (
	"strings"
	"testing"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// keepsScripting shows that a user that an earlier version of the operator made keeps the right to run scripts, also where the status, or the
// cache, has forgotten it; that a new user does not have it; and that the spec gives it and takes it away. No credential changes.
func (s *stage) keepsScripting(t *testing.T) {
	var counts counted
	look := s.look(t, "scripts", &counts)
	of := names.Tenant{Name: "scripts"}.App("web")
	pass := func(what string, asked, want v1.Scripting) {
		t.Helper()
		look.tenant.Spec.Apps[0].Cache.Scripting = asked
		found := look.run(t.Context())
		if err := found.failure(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		look.tenant.Status.Apps = found.apps(look.tenant, look.now)
		if told := look.tenant.Status.Apps[0].Cache.Scripting; told != want {
			t.Errorf("%s: the status says %q, want %q", what, told, want)
		}
		if may := s.scripts(t, of); may != (want == v1.ScriptingAllowed) {
			t.Errorf("%s: the app may run scripts: %t, want it %s", what, may, want)
		}
	}
	pass("a new user", "", v1.ScriptingDenied)
	pass("a new user, once more", "", v1.ScriptingDenied)
	look.tenant.Status.Apps = nil
	pass("a new user, and a lost status", "", v1.ScriptingDenied)
	s.asBefore(t, of)
	look.tenant.Status.Apps[0].Cache.Scripting = "" // As that version writes it.
	pass("a user of before", "", v1.ScriptingAllowed)
	s.as(t, "ACL", "DELUSER", of.RedisUser())
	pass("a user of before, and a cache that has lost it", "", v1.ScriptingAllowed)
	look.tenant.Status.Apps = nil
	pass("a user of before, and a lost status", "", v1.ScriptingAllowed)
	pass("taken away", v1.ScriptingDenied, v1.ScriptingDenied)
	pass("nothing said after that", "", v1.ScriptingDenied)
	pass("given", v1.ScriptingAllowed, v1.ScriptingAllowed)
	look.tenant.Spec.Apps[0].Cache.Profile = v1.AccessReadOnly
	pass("a reader", "", v1.ScriptingDenied)
	if counts != (counted{Generated: 2, Published: 2, Roles: 1, Users: 2}) { // One more user, where the cache had lost it.
		t.Errorf("it has written %+v", counts)
	}
}

// asBefore gives an app's user the rules that earlier versions of the operator gave it.
func (s *stage) asBefore(t *testing.T, of names.App) {
	t.Helper()
	s.as(t, append([]any{"ACL", "SETUSER", of.RedisUser()}, anys(strings.Fields(`+@all -@admin -@dangerous -scan -randomkey -dbsize -client|tracking
		-pubsub|channels -pubsub|shardchannels -pubsub|numpat -function -script|flush -script|kill
		-cluster +cluster|info +cluster|keyslot +cluster|myid +cluster|nodes +cluster|shards +cluster|slots`))...)...)
}

func anys(words []string) []any {
	var all []any
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

// as sends a command to Redis as its administrator.
func (s *stage) as(t *testing.T, command ...any) {
	t.Helper()
	admin := s.redis.Admin()
	defer func() { _ = admin.Close() }()
	if err := admin.Do(t.Context(), command...).Err(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
}

// scripts reports whether an app may run scripts.
func (s *stage) scripts(t *testing.T, of names.App) bool {
	t.Helper()
	with := s.stored(t, of.CacheSecret())
	session := s.redis.Client(with.Username, with.Password.Reveal())
	defer func() { _ = session.Close() }()
	err := session.Do(t.Context(), "EVAL", "return 1", "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Fatal(err)
	}
	return err == nil
}
