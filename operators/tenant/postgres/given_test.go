package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// user is the app's user with a store, whose overlaps end at once.
func (a app) user(store credential.Store) credential.User {
	logins := a.names.Logins()
	return credential.User{
		Once:   credential.Once{Store: store, Name: "db", Owner: a.mark, Username: logins[0], Alternate: logins[1]},
		System: a.logins, Overlap: time.Nanosecond,
	}
}

// rotated converges a user of which two rotations were asked for, and returns its three records.
func (a app) rotated(t *testing.T, user credential.User) []credential.Record {
	t.Helper()
	var records []credential.Record
	for _, request := range []string{"", "one", "two"} {
		user.Request = request
		for range 2 { // The second one takes the login before out of use.
			outcome, err := user.Converge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Generation > len(records) {
				records = append(records, outcome.Record)
			}
		}
	}
	return records
}

// A store that was restored from a backup has an older credential than the server. Nothing is written, and who has the newer credential can log in.
func TestAStoreThatIsOlderThanTheServerChangesNothing(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]int{"olderby1": 1, "olderby2": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newApp(t, name)
			app.converge(t)
			records := app.rotated(t, app.user(&memory{}))
			store := &memory{records: records[:3-behind], published: 3 - behind, since: time.Now().Add(-time.Hour)}
			before := len(said(name))
			for range 2 {
				if _, err := app.user(store).Converge(t.Context()); !errors.Is(err, credential.ErrBehind) {
					t.Errorf("Converge returned %v, want %v", err, credential.ErrBehind)
				}
			}
			if wrote := writes(said(name)[before:]); len(wrote) > 0 {
				t.Errorf("it said %q", wrote)
			}
			app.expect(t, "with the older store", map[credential.Record]credential.State{records[2]: credential.Accepted})
		})
	}
}
