package main

import (
	"strings"
	"testing"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// allowsScripts shows that only the spec gives and takes the right to run scripts, also where the status is lost. No credential changes.
func (s *stage) allowsScripts(t *testing.T) {
	var counts counted
	look := s.look(t, "scripts", &counts)
	of := names.Tenant{Name: "scripts"}.App("web")
	pass := func(what string, asked v1.Scripting, want bool) {
		t.Helper()
		look.tenant.Spec.Apps[0].Cache.Scripting = asked
		found := look.run(t.Context())
		if err := found.failure(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		look.tenant.Status.Apps = found.apps(look.tenant, look.now)
		if may := s.scripts(t, of); may != want {
			t.Errorf("%s: the app may run scripts: %t, want %t", what, may, want)
		}
	}
	pass("a new user", v1.ScriptingDenied, false)
	pass("given", v1.ScriptingAllowed, true)
	look.tenant.Status.Apps = nil
	pass("given, and a lost status", v1.ScriptingAllowed, true)
	pass("taken away", v1.ScriptingDenied, false)
	look.tenant.Spec.Apps[0].Cache.Profile = v1.AccessReadOnly
	pass("a reader", v1.ScriptingDenied, false)
	if counts != (counted{Generated: 2, Published: 2, Roles: 1, Users: 1}) {
		t.Errorf("it has written %+v", counts)
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
