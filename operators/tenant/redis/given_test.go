package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// A store that was restored from a backup has an older credential than the nodes. Nothing is written, and who has the newer credential can log in. A
// password that a person has changed is put right, as before.
func TestAStoreThatIsOlderThanTheNodesChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := &memory{}
	user := f.user(store, credential.Policy{})
	user.Overlap = time.Nanosecond
	var records []credential.Record
	for _, request := range []string{"", "one"} {
		user.Request = request
		for range 2 { // The second one takes the password before out of use.
			outcome, err := user.Converge(t.Context())
			must(t, err)
			if outcome.Generation > len(records) {
				records = append(records, outcome.Record)
			}
		}
	}
	user.Request = ""
	first, second := records[0].Password.Reveal(), records[1].Password.Reveal()
	f.lets(t, "after the rotation", map[string]string{first: "no no", second: "yes yes"})
	user.Store = &memory{records: records[:1], published: 1}
	f.quiet(t, "an older store", func() {
		for range 2 {
			if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrBehind) {
				t.Errorf("Converge returned %v, want %v", err, credential.ErrBehind)
			}
		}
	})
	f.lets(t, "with the older store", map[string]string{first: "no no", second: "yes yes"})
	user.Store = store
	f.as(t, f.servers[0], "ACL", "SETUSER", user.Username, "resetpass", ">by-hand")
	if _, err := user.Converge(t.Context()); err != nil {
		t.Error(err)
	}
	f.lets(t, "after the drift", map[string]string{second: "yes yes", "by-hand": "no no"})
}

// Users of earlier releases have no pattern with a generation. They are taken over as they are: each node gets the pattern once, and nothing is
// generated or set. A change of the access leaves it.
func TestUsersOfEarlierReleasesAreTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, server := range f.servers {
		f.plant(t, server, ours()+">first")
	}
	_, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
	must(t, err)
	store := &memory{records: []credential.Record{user()}, published: 1}
	converge := func() {
		_, err := f.user(store, credential.Policy{}).Converge(t.Context())
		must(t, err)
		_, err = f.users.ConvergeAccess(t.Context(), owner(), user().Username)
		must(t, err)
	}
	converge()
	f.quiet(t, "the next look", converge)
	f.users.Access.Prefix = "acme:web:"
	converge()
	f.quiet(t, "the look after another access", converge)
	beside, err := f.users.Superseded(t.Context(), owner(), user(), nil)
	if err != nil || beside.Accepted || beside.Current != credential.GivenOf(user()) || beside.Latest != beside.Current || len(store.records) != 1 {
		t.Errorf("%+v, %v", beside, err)
	}
	f.lets(t, "taken over", map[string]string{"first": "yes yes"})
	if names.CacheGiven(owner().String(), 1, time.Time{}) == names.CacheGiven("another", 1, time.Time{}) {
		t.Error("two owners share a key")
	}
}
