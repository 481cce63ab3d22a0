package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
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
