package redis_test

import (
	"errors"
	"os"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// hide takes away the folder of a server, so that it cannot write its ACL file, until the returned function is called.
func hide(t *testing.T, server *servers.Redis) (back func()) {
	t.Helper()
	must(t, os.Rename(server.Dir, server.Dir+".hidden"))
	return func() {
		t.Helper()
		must(t, os.Rename(server.Dir+".hidden", server.Dir))
	}
}

// restart shows what a server knows after a crash: what is in its file.
func (f *fixture) restart(t *testing.T, server *servers.Redis) {
	t.Helper()
	must(t, server.Kill())
	must(t, server.Start(t.Context()))
}

// A password that was taken away would be accepted again after a restart, so each look repeats a save that failed, and says so until it works.
func TestAChangeThatWasNotSavedIsSavedAtTheNextLook(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	look := func() error {
		_, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
		return err
	}
	must(t, f.users.Create(t.Context(), owner(), user()))
	must(t, look())
	expected := []redis.Expected{f.users.Expect(owner(), withPassword("second"))}

	back := hide(t, f.servers[0])
	if err := f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second")}); !errors.Is(err, redis.ErrUnsaved) {
		t.Errorf("a change that is not saved: %v", err)
	}
	f.lets(t, "before the restart", map[string]string{"first": "no no", "second": "yes yes"})
	for range 2 {
		if err := look(); !errors.Is(err, redis.ErrUnsaved) {
			t.Errorf("the next look: %v", err)
		}
	}
	if _, err := f.nodes.WithoutFile(t.Context()); !errors.Is(err, redis.ErrUnsaved) {
		t.Errorf("the check of the nodes: %v", err)
	}
	if difference, err := f.nodes.Difference(t.Context(), expected); difference == "" || err != nil {
		t.Errorf("a quick check: %q, %v", difference, err)
	}
	f.users.Nodes = f.open(t, credential.NewPassword("operator"))
	if err := look(); !errors.Is(err, redis.ErrUnsaved) {
		t.Errorf("the first look of another process: %v", err)
	}
	back()
	must(t, look())
	if difference, err := f.users.Nodes.Difference(t.Context(), expected); difference != "" || err != nil {
		t.Errorf("a quick check after the save: %q, %v", difference, err)
	}
	f.restart(t, f.servers[0])
	f.lets(t, "after the restart", map[string]string{"first": "no no", "second": "yes yes"})
}

// A deleted user would be back after a restart, and nothing looks for it any more then.
func TestADeletionThatWasNotSavedIsNotDone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	must(t, f.users.Create(t.Context(), owner(), user()))
	back := hide(t, f.servers[0])
	for range 2 {
		if err := f.users.Delete(t.Context(), owner(), user().Username); !errors.Is(err, redis.ErrUnsaved) {
			t.Errorf("a deletion that is not saved: %v", err)
		}
	}
	back()
	must(t, f.users.Delete(t.Context(), owner(), user().Username))
	f.restart(t, f.servers[0])
	f.lets(t, "after the restart", map[string]string{"first": "no no"})
}
