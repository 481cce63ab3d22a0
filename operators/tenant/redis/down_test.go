package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// oneDown is a fixture whose user has converged on both nodes. Then the first node crashes. It keeps its users in its file.
func oneDown(t *testing.T) (*fixture, *memory, credential.User) {
	t.Helper()
	f, store := newFixture(t), &memory{records: []credential.Record{user()}, published: 1}
	made := f.user(store, credential.Policy{LeaveDrift: true})
	_, err := made.Converge(t.Context())
	must(t, err)
	must(t, f.servers[0].Kill())
	return f, store, made
}

// partly shows that an error is the one of the first node alone.
func (f *fixture) partly(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, credential.ErrPartial) || !errors.Is(err, redis.ErrUnreachable) || !strings.Contains(err.Error(), f.servers[0].Address()) ||
		strings.Contains(err.Error(), f.servers[1].Address()) {
		t.Errorf("%s: %v", what, err)
	}
}

// accepts tells the generations of a store whose passwords a server accepts.
func (f *fixture) accepts(t *testing.T, server *servers.Redis, store *memory) string {
	t.Helper()
	accepted := ""
	for _, record := range store.records {
		client := server.Client(record.Username, record.Password.Reveal())
		if client.Ping(t.Context()).Err() == nil {
			accepted += string(rune('0' + record.Generation))
		}
		_ = client.Close()
	}
	return accepted
}

// A leaked password is refused on the nodes that answer, readers get the next one, and a node that comes back with the old password gets the
// new one: it is behind, and no person has changed it.
func TestANodeThatIsDownDoesNotKeepALeakedPasswordAlive(t *testing.T) {
	t.Parallel()
	f, store, made := oneDown(t)
	made.Request, made.InPlace = "leaked", true
	outcome, err := made.Converge(t.Context())
	f.partly(t, "the rotation", err)
	if got := f.accepts(t, f.servers[1], store); outcome.Generation != 2 || store.published != 2 || got != "2" {
		t.Fatalf("generation %d, published %d, the node that answers accepts %s", outcome.Generation, store.published, got)
	}
	f.quiet(t, "the next look", func() {
		if again, err := made.Converge(t.Context()); again.Generation != 2 {
			t.Errorf("the next look has generation %d: %v", again.Generation, err)
		}
	}, f.servers[1])
	must(t, f.servers[0].Start(t.Context()))
	if got := f.accepts(t, f.servers[0], store); got != "1" {
		t.Fatalf("the node comes back and accepts %s", got)
	}
	f.observe(t, store.records[1])
	_, err = made.Converge(t.Context())
	must(t, err)
	for _, server := range f.servers {
		if got := f.accepts(t, server, store); got != "2" {
			t.Errorf("in the end a node accepts %s", got)
		}
	}
}

// What a node was not given while it was down, it is also given by the look for access.
func TestANodeThatComesBackBehindGetsThePasswordsOfTheOthers(t *testing.T) {
	t.Parallel()
	f, store, made := oneDown(t)
	made.Request, made.InPlace = "leaked", true
	_, err := made.Converge(t.Context())
	f.partly(t, "the rotation", err)
	must(t, f.servers[0].Start(t.Context()))
	f.observe(t, store.records[1])
	changed, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
	if err != nil || !changed || f.accepts(t, f.servers[0], store) != "2" {
		t.Errorf("changed %t, %v, it accepts %s", changed, err, f.accepts(t, f.servers[0], store))
	}
}

// Where the old password is still accepted, nothing is lost by waiting: readers get no password that a node may refuse.
func TestAnOverlapWaitsForANodeThatIsDown(t *testing.T) {
	t.Parallel()
	f, store, made := oneDown(t)
	made.Request = "planned"
	_, err := made.Converge(t.Context())
	f.partly(t, "a planned rotation", err)
	if len(store.records) != 1 {
		t.Errorf("a planned rotation generates a password while a node is down")
	}
	next := withPassword("second")
	next.Generation, next.Request, next.Created = 2, "planned", user().Created.AddDate(1, 0, 0)
	store.records = append(store.records, next)
	outcome, err := made.Converge(t.Context())
	f.partly(t, "a rotation that was interrupted", err)
	if got := f.accepts(t, f.servers[1], store); outcome.Generation != 0 || store.published != 1 || got != "12" {
		t.Errorf("generation %d, published %d, the node that answers accepts %s", outcome.Generation, store.published, got)
	}
	made.Request, made.InPlace = "leaked", true
	outcome, err = made.Converge(t.Context())
	f.partly(t, "a leak in the meantime", err)
	if got := f.accepts(t, f.servers[1], store); outcome.Generation != 3 || store.published != 3 || got != "3" {
		t.Errorf("generation %d, published %d, the node that answers accepts %s", outcome.Generation, store.published, got)
	}
}

// The password before is retired, and a user is deleted, where nodes answer.
func TestNodesThatAnswerRetireAndDelete(t *testing.T) {
	t.Parallel()
	f, _, _ := oneDown(t)
	f.plant(t, f.servers[1], ">second")
	f.partly(t, "the end of an overlap", f.users.Retire(t.Context(), owner(), withPassword("second"), nil))
	if _, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username); err == nil {
		t.Error("the access has converged")
	}
	login := func(password string) error {
		client := f.servers[1].Client(user().Username, password)
		defer func() { _ = client.Close() }()
		return client.Ping(t.Context()).Err()
	}
	if first, second := login("first"), login("second"); first == nil || second != nil {
		t.Errorf("after the end of the overlap: %v and %v", first, second)
	}
	f.partly(t, "the deletion", f.users.Delete(t.Context(), owner(), user().Username))
	if login("second") == nil {
		t.Error("the node that answers still has the user")
	}
}

// Nothing is generated for a user that may exist on a node that does not answer.
func TestANodeThatIsDownMayHaveWhatTheStoreHasLost(t *testing.T) {
	t.Parallel()
	f, store, made := oneDown(t)
	f.as(t, f.servers[1], "ACL", "DELUSER", user().Username)
	store.records, store.published = nil, 0
	made.Policy.ReplaceMissing = true
	_, err := made.Converge(t.Context())
	f.partly(t, "a look", err)
	if len(store.records) > 0 {
		t.Error("a password was generated")
	}
}
