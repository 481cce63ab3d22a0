package redis_test

import (
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// A quick check finds all that ConvergeAccess or credential.User would do something about, on any node, and writes nothing.
func TestAQuickCheckFindsEachDrift(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := &memory{}
	converge := func() credential.Record {
		outcome, err := f.user(store, credential.Policy{}).Converge(t.Context())
		must(t, err)
		_, err = f.users.ConvergeAccess(t.Context(), owner(), user().Username)
		must(t, err)
		return outcome.Record
	}
	finds := func() bool {
		difference, err := f.nodes.Difference(t.Context(), []redis.Expected{f.users.Expect(owner(), converged(t, store))})
		must(t, err)
		return difference != ""
	}
	current := converge()
	for name, rules := range map[string]string{
		"another password":    "resetpass >by-hand",
		"one more password":   ">by-hand",
		"no password":         "nopass",
		"a user that is off":  "off",
		"more keys":           "~other:*",
		"more channels":       "&other:*",
		"more commands":       "+eval",
		"a lost mark":         "resetkeys ~acme:*",
		"another mark":        "~einmal.owner:another-owner",
		"rights beside those": "(~x:* +get)",
	} {
		f.quiet(t, "a check", func() {
			if finds() {
				t.Fatalf("before %s a difference is found", name)
			}
		})
		f.plant(t, f.servers[1], rules)
		f.quiet(t, "a check", func() {
			if !finds() {
				t.Errorf("%s is not found", name)
			}
		})
		for _, server := range f.servers {
			f.as(t, server, "ACL", "DELUSER", user().Username)
		}
		if again := converge(); again != current {
			t.Fatalf("after %s the credential is another", name)
		}
	}
	f.as(t, f.servers[0], "ACL", "DELUSER", user().Username)
	if !finds() {
		t.Error("a node without the user is not found")
	}
}

// converged is the latest record of a store.
func converged(t *testing.T, of *memory) credential.Record {
	t.Helper()
	if len(of.records) == 0 {
		t.Fatal("the store has nothing")
	}
	return of.records[len(of.records)-1]
}
