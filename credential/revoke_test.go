package credential_test

import (
	"context"
	"errors"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

var errHeldUp = errors.New("the server does not answer a login")

// heldUp is a system in which a tenant holds up all logins. Set fails as often as asked.
type heldUp struct {
	credentialtest.Session

	logins, sets int
}

func (h *heldUp) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	state, err := h.Session.Observe(ctx, owner, username, password)
	if h.logins > 0 && (state == credential.Accepted || state == credential.Refused) {
		return "", errHeldUp
	}
	return state, err
}

func (h *heldUp) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	if h.sets > 0 {
		h.sets--
		return errHeldUp
	}
	return h.Session.Set(ctx, owner, change)
}

// A tenant that holds up logins delays a rotation in place neither before nor after the record is stored. The new password is published when a login
// works again.
func TestARevocationTriesNoLogin(t *testing.T) {
	t.Parallel()
	t.Run("Revoke", func(t *testing.T) {
		t.Parallel()
		bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
			loginsAreHeldUp(t, user, system, nil, credential.User.Revoke)
		})
	})
	t.Run("Converge", func(t *testing.T) {
		t.Parallel()
		bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
			loginsAreHeldUp(t, user, system, errHeldUp, func(user credential.User, ctx context.Context) error {
				_, err := user.Converge(ctx)
				return err
			})
		})
	})
}

// loginsAreHeldUp revokes a password in a way that returns an error as long as logins are held up. The first Set fails.
func loginsAreHeldUp(
	t *testing.T, user credential.User, system *credentialtest.Users, want error, revoke func(credential.User, context.Context) error,
) {
	t.Helper()
	held := &heldUp{Session: credentialtest.Session{Users: system}}
	user.System = held
	first := converged(t, user)
	user.Request, user.InPlace = "leaked", true
	held.logins, held.sets = 1, 1
	if err := revoke(user, t.Context()); !errors.Is(err, errHeldUp) || !system.Accepts(first.Record) {
		t.Fatalf("before: %v", err)
	}
	if err := revoke(user, t.Context()); !errors.Is(err, want) || system.Accepts(first.Record) {
		t.Errorf("the old password is accepted: %t, %v", system.Accepts(first.Record), err)
	}
	writes := system.Writes()
	if err := revoke(user, t.Context()); !errors.Is(err, want) || system.Writes() != writes {
		t.Errorf("it wrote again: %v", err)
	}
	held.logins = 0
	if second := converged(t, user); second.Generation != 2 || !system.Accepts(second.Record) {
		t.Errorf("readers get %+v", second)
	}
}

// A rotation with an overlap is under way, and the tenant holds up its proof. A revocation then rejects both passwords that came before.
func TestARevocationEndsAnOverlapThatHasNotBegun(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		held := &heldUp{Session: credentialtest.Session{Users: system}}
		user.System = held
		first := converged(t, user)
		held.logins, user.Request = 1, "planned"
		user.Generation, user.Proven = 1, true
		if _, err := user.Converge(t.Context()); !errors.Is(err, errHeldUp) {
			t.Fatalf("the rotation: %v", err)
		}
		user.Request, user.InPlace = "leaked", true
		if err := user.Revoke(t.Context()); err != nil || system.Accepts(first.Record) {
			t.Errorf("the first password is accepted: %t, %v", system.Accepts(first.Record), err)
		}
		held.logins = 0
		if last := converged(t, user); last.Generation != 3 || !system.Accepts(last.Record) || system.Accepts(first.Record) {
			t.Errorf("readers get %+v", last)
		}
	})
}

// A request during an overlap waits, and what is not the operator's is left alone.
func TestARevocationKeepsPromises(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		if err := user.Revoke(t.Context()); err != nil || system.Writes() != 0 {
			t.Errorf("without a credential: %v, %d writes", err, system.Writes())
		}
		first := converged(t, user)
		user.Request = "planned"
		second := converged(t, user)
		writes := system.Writes()
		user.Request, user.InPlace = "leaked", true
		if err := user.Revoke(t.Context()); err != nil || system.Writes() != writes || !system.Accepts(first.Record) || !system.Accepts(second.Record) {
			t.Errorf("in the overlap: %v, %d writes", err, system.Writes()-writes)
		}
	})
}

// The holder of a credential cannot prolong the overlap of the previous one with logins that hang: the latest one was proved before it was published.
func TestAnOverlapEndsAlthoughLoginsAreHeldUp(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		held := &heldUp{Session: credentialtest.Session{Users: system}}
		user.System = held
		first := converged(t, user).Record
		user.Request = "planned"
		second := converged(t, user).Record
		held.logins = 1
		if _, err := user.Converge(t.Context()); !errors.Is(err, errHeldUp) {
			t.Errorf("in the overlap: %v", err)
		}
		letsIn(t, system, "in the overlap", map[credential.Record]bool{first: true, second: true})
		afterTheOverlap()
		if _, err := user.Converge(t.Context()); !errors.Is(err, errHeldUp) {
			t.Errorf("after the overlap: %v", err)
		}
		letsIn(t, system, "after the overlap", map[credential.Record]bool{first: false, second: true})
	})
}
