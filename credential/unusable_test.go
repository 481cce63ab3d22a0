package credential_test

import (
	"context"
	"errors"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// limited is a system that accepts passwords and then lets no user in.
type limited struct{ credentialtest.Session }

func (l limited) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	state, err := l.Session.Observe(ctx, owner, username, password)
	if state == credential.Accepted {
		err = credential.ErrUnusable
	}
	return state, err
}

// Users that cannot log in although their passwords are right keep nothing from being done: they are created, rotated and revoked, and readers get
// the passwords. The error says each time that no user can log in.
func TestUsersThatCannotLogInAreConvergedAndReported(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		user.System = limited{credentialtest.Session{Users: system}}
		converge := func(generation int) credential.Record {
			t.Helper()
			outcome, err := user.Converge(t.Context())
			if !errors.Is(err, credential.ErrUnusable) || outcome.Generation != generation || !outcome.Verified || !system.Accepts(outcome.Record) {
				t.Errorf("generation %d: %+v, %v", generation, outcome, err)
			}
			if found, err := user.Store.Read(t.Context(), user.Name, user.Owner, 1); err != nil || found.Published != generation {
				t.Errorf("readers get generation %d, want %d: %v", found.Published, generation, err)
			}
			return outcome.Record
		}
		first := converge(1)
		user.Request = "planned"
		second := converge(2)
		letsIn(t, system, "in the overlap", map[credential.Record]bool{first: true, second: true})
		afterTheOverlap()
		converge(2)
		user.Request, user.InPlace = "leaked", true
		third := converge(3)
		letsIn(t, system, "in the end", map[credential.Record]bool{first: false, second: false, third: true})
	})
}
