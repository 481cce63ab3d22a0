package credential_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// members is a system of two members, of which the second may be down. The state of a user is that of the first.
type members struct {
	credentialtest.Session

	second credentialtest.Session
	down   bool
}

func (m *members) both(one error, do func(credentialtest.Session) error) error {
	if m.down && one == nil {
		return fmt.Errorf("%w: the second is down", credential.ErrPartial)
	}
	if m.down {
		return one
	}
	return errors.Join(one, do(m.second))
}

func (m *members) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	state, err := m.Session.Observe(ctx, owner, username, password)
	return state, m.both(err, func(credentialtest.Session) error { return nil })
}

func (m *members) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	return m.both(m.Session.Create(ctx, owner, record), func(s credentialtest.Session) error { return s.Create(ctx, owner, record) })
}

func (m *members) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	return m.both(m.Session.Set(ctx, owner, change), func(s credentialtest.Session) error { return s.Set(ctx, owner, change) })
}

func (m *members) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, others []string) (credential.Beside, error) {
	beside, err := m.Session.Superseded(ctx, owner, current, others)
	return beside, m.both(err, func(credentialtest.Session) error { return nil })
}

func (m *members) Retire(ctx context.Context, owner credential.Owner, current credential.Record, others []string) error {
	return m.both(m.Session.Retire(ctx, owner, current, others), func(s credentialtest.Session) error { return s.Retire(ctx, owner, current, others) })
}

// ofMembers returns a user of a system of two members, in which nothing was created yet.
func ofMembers(t *testing.T) (credential.User, *members) {
	t.Helper()
	_, api := apiserver.Start(t)
	system := &members{
		Session: credentialtest.Session{Users: &credentialtest.Users{Room: 2}}, second: credentialtest.Session{Users: &credentialtest.Users{Room: 2}},
	}
	store := credential.Secrets{Client: api, Namespace: "default"}
	return credential.User{Once: credential.Once{Store: store, Name: "app-db", Owner: testOwner(), Username: "app"}, System: system}, system
}

// partialCase is what Converge does while the second member is down.
type partialCase struct {
	// before is done while both members are up.
	before func(t *testing.T, user *credential.User, system *members)
	ask    func(user *credential.User)
	// stored and published are the generations in the end, and accepted those that the first member accepts.
	stored, published int
	accepted          string
}

func (c partialCase) run(t *testing.T) {
	t.Helper()
	user, system := ofMembers(t)
	converged(t, user)
	if c.before != nil {
		c.before(t, &user, system)
	}
	if c.ask != nil {
		c.ask(&user)
	}
	system.down = true
	for range 2 {
		outcome, err := user.Converge(t.Context())
		if !errors.Is(err, credential.ErrPartial) || outcome.Generation != c.published && !errors.Is(err, credential.ErrDrifted) {
			t.Errorf("the outcome is generation %d, %v", outcome.Generation, err)
		}
	}
	found, err := user.Store.Read(t.Context(), user.Name, user.Owner, 1)
	accepted := ""
	for _, record := range found.Records {
		if system.Accepts(record) {
			accepted += strconv.Itoa(record.Generation)
		}
	}
	if err != nil || len(found.Records) != c.stored || found.Published != c.published || accepted != c.accepted {
		t.Errorf("%d are stored, %d is published, and the first member accepts %q: %v", len(found.Records), found.Published, accepted, err)
	}
}

// While a member does not answer, the others go on: a leaked password ends there, and so does an overlap. Nothing is generated that can wait, and
// readers get nothing that a member may refuse, unless they have something that is refused already.
func TestAMemberThatIsDownHoldsUpNothingOnTheOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]partialCase{
		"a rotation in place":              {ask: func(user *credential.User) { user.Request, user.InPlace = "leaked", true }, stored: 2, published: 2, accepted: "2"},
		"a rotation with an overlap waits": {ask: func(user *credential.User) { user.Request = "planned" }, stored: 1, published: 1, accepted: "1"},
		"the end of an overlap": {before: func(t *testing.T, user *credential.User, _ *members) {
			t.Helper()
			user.Request = "planned"
			converged(t, *user)
			afterTheOverlap()
		}, stored: 2, published: 2, accepted: "2"},
		"a changed password is set back": {before: func(t *testing.T, user *credential.User, system *members) {
			t.Helper()
			system.ChangePassword(user.Username, credential.NewPassword("by-hand"))
		}, stored: 1, published: 1, accepted: "1"},
		"a rotation in place of a password that was changed": {before: func(t *testing.T, user *credential.User, system *members) {
			t.Helper()
			user.Request = "planned"
			converged(t, *user)
			system.ChangePassword(user.Username, credential.NewPassword("by-hand"))
			user.Policy.LeaveDrift = true
		}, ask: func(user *credential.User) { user.Request, user.InPlace = "leaked", true }, stored: 2, published: 3, accepted: "3"},
		"a rotation with an overlap of a password that was changed waits": {before: func(t *testing.T, user *credential.User, system *members) {
			t.Helper()
			system.ChangePassword(user.Username, credential.NewPassword("by-hand"))
			user.Policy.LeaveDrift = true
		}, ask: func(user *credential.User) { user.Request = "planned" }, stored: 1, published: 1},
		"a user that was lost": {before: func(t *testing.T, user *credential.User, system *members) {
			t.Helper()
			system.Lose(user.Username)
		}, stored: 1, published: 1, accepted: "1"},
		"a lost credential, and a lost user": {before: func(t *testing.T, user *credential.User, system *members) {
			t.Helper()
			system.Lose(user.Username)
			lose(t, *user, "app-db", "app-db.g1")
			user.Policy.ReplaceMissing = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.run(t)
			})
		})
	}
}

// A rotation that has begun gives the members that answer both passwords, and readers get the next one when all members have it.
func TestReadersWaitUntilAllMembersHaveThePassword(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		user, system := ofMembers(t)
		first := converged(t, user).Record
		second := first
		second.Generation, second.Password, second.Request, second.Created = 2, credential.NewPassword("second"), "planned", first.Created.AddDate(0, 0, 1)
		if err := user.Store.Create(t.Context(), user.Name, user.Owner, second); err != nil {
			t.Fatal(err)
		}
		system.down, user.Request = true, "planned"
		outcome, err := user.Converge(t.Context())
		if !errors.Is(err, credential.ErrPartial) || outcome.Generation != 0 || !system.Accepts(first) || !system.Accepts(second) {
			t.Errorf("while a member is down: generation %d, %v", outcome.Generation, err)
		}
		system.down = false
		if err := system.second.Set(t.Context(), user.Owner, credential.Assignment{Record: second, Keep: true, Previous: first}); err != nil {
			t.Fatal(err)
		}
		if outcome := converged(t, user); outcome.Generation != 2 || outcome.Until.IsZero() {
			t.Errorf("when it is back: %+v", outcome)
		}
	})
}
