package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// A user `default` that is on and needs no password lets everyone read the keys of all tenants, whatever the rights of their users are.
func TestAnOpenDefaultUserIsFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.nodes.Check(t.Context()))
	stock := []any{"ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all"}
	f.as(t, f.servers[1], stock...)
	f.as(t, f.servers[1], "SET", "acme:secret", "of a tenant")
	anyone := f.servers[1].Client("", "")
	defer func() { _ = anyone.Close() }()
	if read, err := anyone.Get(t.Context(), "acme:secret").Result(); err != nil || read != "of a tenant" {
		t.Fatalf("the server is not open: %q, %v", read, err)
	}
	err := f.nodes.Check(t.Context())
	if !errors.Is(err, redis.ErrOpen) || !strings.Contains(err.Error(), f.servers[1].Address()) || !strings.Contains(err.Error(), "ACL SETUSER default off") {
		t.Errorf("an open node passes as %v", err)
	}
	for _, closed := range [][]any{{"off"}, {"on", "resetpass", ">secret"}} {
		f.as(t, f.servers[1], append([]any{"ACL", "SETUSER", "default"}, closed...)...)
		if err := f.nodes.Check(t.Context()); err != nil {
			t.Errorf("default %v: %v", closed, err)
		}
	}
}

// Each right is tried on the server, and none of the tries changes a user.
func TestTheRightsOfTheAdministratorAreTried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.as(t, f.servers[0], "ACL", "LIST")
	must(t, f.nodes.Check(t.Context()))
	if diff := cmp.Diff(before, f.as(t, f.servers[0], "ACL", "LIST")); diff != "" {
		t.Errorf("the users are others (-before +after):\n%s", diff)
	}
	for _, right := range []string{
		"multi", "exec", "discard", "acl|getuser", "acl|setuser", "acl|deluser", "acl|users", "acl|save", "acl|cat", "client|kill",
	} {
		f.as(t, f.servers[1], "ACL", "SETUSER", "operator", "-"+right)
		err := f.nodes.Check(t.Context())
		if !errors.Is(err, redis.ErrDenied) || !strings.Contains(err.Error(), "+"+right) {
			t.Errorf("without %s: %v", right, err)
		}
		f.as(t, f.servers[1], "ACL", "SETUSER", "operator", "+"+right)
		must(t, f.nodes.Check(t.Context()))
	}
	if after := f.as(t, f.servers[1], "ACL", "USERS"); !cmp.Equal(after, []any{"admin", "default", "operator"}) {
		t.Errorf("the tries leave the users %v", after)
	}
}

// Nodes that forget their users at a restart are named: until the next look no tenant can log in then.
func TestEachNodeWithoutAnACLFileIsNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 2 {
		forget, err := f.nodes.WithoutFile(t.Context())
		if want := []string{f.servers[1].Address()}; err != nil || !slices.Equal(forget, want) {
			t.Errorf("%v, %v, want %v", forget, err, want)
		}
	}
	// A node that has saved its users is not asked to do so at every look.
	if saved := f.writes(t, f.servers[0]); saved != "cmdstat_acl|save:calls=1 cmdstat_acl|setuser:calls=1" {
		t.Errorf("two looks are: %s", saved)
	}
}

// A user that is made now cannot run scripts: one script of one tenant stops the server for all of them.
func TestOneTenantDoesNotStopTheServerForAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := f.servers[0]
	f.as(t, server, "CONFIG", "SET", "busy-reply-threshold", "100")
	must(t, f.users.Create(t.Context(), owner(), user()))
	for _, line := range []string{
		"EVAL return(1) 0", "EVALSHA x 0", "EVAL_RO return(1) 0", "SCRIPT LOAD return(1)", "SCRIPT EXISTS x", "FCALL f 0", "FCALL_RO f 0", "FUNCTION STATS",
	} {
		f.mayNot(t, func() *goredis.Client { return server.Client(user().Username, "first") }, line)
	}
	f.users.Access.Scripting = true
	if changed, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username); err != nil || !changed {
		t.Fatalf("scripting is allowed: %t, %v", changed, err)
	}
	f.stops(t)
	f.users.Access.Scripting = false
	if changed, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username); err != nil || !changed {
		t.Fatalf("scripting is taken away: %t, %v", changed, err)
	}
	f.mayNot(t, func() *goredis.Client { return server.Client(user().Username, "first") }, "EVAL return(1) 0")
}

// stops shows that a script stops the server, that the error says what to do about it, and that the administrator can do that.
func (f *fixture) stops(t *testing.T) {
	t.Helper()
	app := f.servers[0].Client(user().Username, "first")
	defer func() { _ = app.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Eval(ctx, "while true do end", nil).Err() }()
	defer func() { cancel(); <-ended }() //nolint:errcheck // It ends with the context.
	f.eventually(t, "the server is busy", func() error {
		_, err := f.users.Observe(t.Context(), owner(), user().Username, credential.Password{})
		if !errors.Is(err, redis.ErrNotReady) || !strings.Contains(err.Error(), "SCRIPT KILL") {
			return fmt.Errorf("a look says %w", err)
		}
		return nil
	})
	operator := f.servers[0].Client("operator", "operator")
	defer func() { _ = operator.Close() }()
	must(t, operator.ScriptKill(t.Context()).Err())
	f.observe(t, user())
}

// eventually waits until an attempt succeeds.
func (*fixture) eventually(t *testing.T, what string, attempt func() error) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := attempt()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// The names of the apps of a tenant are found by the marks on their users, on any node: not those of another owner, nor of a tenant with a
// longer name.
func TestAppsAreFoundByTheMarksOnTheirUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ownerOf := func(of names.App) credential.Owner {
		return credential.Owner{Operator: "tenants.einmal.dev@c1", Name: of.Tenant + "/" + of.Name}
	}
	plant := func(node int, app names.App, mark credential.Owner) {
		f.as(t, f.servers[node], "ACL", "SETUSER", app.RedisUser(), "on", ">secret", "~"+app.KeyPrefix("")+"*", names.CacheMark(mark.String()))
	}
	acme := names.Tenant{Name: "acme"}
	plant(0, acme.App("web"), ownerOf(acme.App("web")))
	plant(1, acme.App("web"), ownerOf(acme.App("web")))
	plant(1, acme.App("old-one"), ownerOf(acme.App("old-one")))
	plant(0, acme.App("foreign"), credential.Owner{Operator: "tenants.einmal.dev@c2", Name: "acme/foreign"})
	plant(0, names.Tenant{Name: "acme-corp"}.App("web"), ownerOf(names.Tenant{Name: "acme-corp"}.App("web")))
	f.as(t, f.servers[0], "ACL", "SETUSER", "t_acme_unmarked", "on", ">secret")
	found, err := f.nodes.Apps(t.Context(), acme, ownerOf)
	if want := []string{"old-one", "web"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
	f.as(t, f.servers[1], "ACL", "SETUSER", "operator", "-acl|users")
	if _, err := f.nodes.Apps(t.Context(), acme, ownerOf); !errors.Is(err, redis.ErrDenied) {
		t.Errorf("where one node does not list its users: %v", err)
	}
}
