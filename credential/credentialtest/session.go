package credentialtest

import (
	"context"

	"github.com/einmal-operators/einmal/credential"
)

// Session gives one process of an operator access to Users. It is a credential.Rotator, and can also change grants and delete users. Its methods
// are safe for concurrent use.
//
// Each write is an effect, so einmaltest.Explore can inject a fault: a failure before the write, or a lost answer after it. The value of an effect
// that sets a password is that password, so Explore finds a password that was replaced. Reads are not effects, and do not fail.
type Session struct {
	*Users

	// Effect runs each write. In a simulation, set it to the IdempotentEffect of the einmaltest.Process of this session. If it is nil, the session
	// runs the write directly, for tests without faults.
	Effect func(name string, do func() (value any, err error)) error
	// Grants represents what users have in addition to their credential, such as limits, permissions or keys. Create sets it for new users, and
	// Converge for existing users.
	Grants string
}

// effect changes a user. The value distinguishes changes with the same name.
func (s Session) effect(what, username string, value any, change func() error) error {
	name := what + " " + s.called(username)
	do := func() (any, error) { return value, s.write(name, change) }
	if s.Effect == nil {
		_, err := do()
		return err
	}
	return s.Effect(name, do)
}

// Observe implements credential.System. It never returns an error.
func (s Session) Observe(_ context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(owner, username, password), nil
}

// Create implements credential.System. The new user has the Grants. If the user exists, Create returns credential.ErrExists.
func (s Session) Create(_ context.Context, owner credential.Owner, record credential.Record) error {
	return s.effect("give a password to", record.Username, record.Password.Reveal(), func() error {
		if s.accounts[record.Username] != nil {
			return credential.ErrExists
		}
		s.put(record.Username, &account{owner: owner, grants: s.Grants})
		return s.give(owner, credential.Assignment{Record: record})
	})
}

// Set implements credential.System. It adds the owner's mark to an unmarked user. It returns credential.ErrConflict for a user of another owner,
// credential.ErrSuperseded for a user that got a later record, and another error for a user that does not exist or cannot have another password. After an error, nothing has changed.
func (s Session) Set(_ context.Context, owner credential.Owner, change credential.Assignment) error {
	return s.effect("give a password to", change.Username, change.Password.Reveal(), func() error { return s.give(owner, change) })
}

// Superseded implements credential.Rotator. It never returns an error.
func (s Session) Superseded(
	_ context.Context, owner credential.Owner, current credential.Record, others []string,
) (credential.Beside, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found credential.Beside
	if known := s.accounts[current.Username]; known != nil && known.owner == owner {
		found.Current = known.given
		found.Accepted = !known.retired && len(known.passwords) > 1
	}
	for _, username := range append([]string{current.Username}, others...) {
		if !s.active(owner, username) {
			continue
		}
		found.Accepted = found.Accepted || username != current.Username
		if given := s.accounts[username].given; given.After(found.Latest) {
			found.Latest = given
		}
	}
	return found, nil
}

// Retire implements credential.Rotator. If the current credential is not accepted, it changes nothing and returns credential.ErrUnproven.
// It does not change users of other owners.
func (s Session) Retire(_ context.Context, owner credential.Owner, current credential.Record, others []string) error {
	return s.effect("retire what was before", current.Username, current.Generation, func() error {
		known := s.accounts[current.Username]
		if !s.active(owner, current.Username) || !known.accepts(current.Password) {
			return credential.ErrUnproven
		}
		known.passwords = []credential.Password{current.Password}
		for _, other := range others {
			if s.active(owner, other) {
				s.accounts[other].retired = true
			}
		}
		return nil
	})
}

// Converge gives the owner's users the Grants and reports whether it wrote anything. It skips users that do not exist or belong to another
// owner.
func (s Session) Converge(ctx context.Context, owner credential.Owner, usernames ...string) (wrote bool, err error) {
	for _, username := range usernames {
		state, err := s.Observe(ctx, owner, username, credential.Password{})
		if err != nil {
			return wrote, err
		}
		if state != credential.Present && state != credential.Retired || s.Granted(username) == s.Grants {
			continue
		}
		err = s.effect("change the grants of", username, s.Grants, func() error {
			if known := s.accounts[username]; known != nil {
				known.grants = s.Grants
			}
			return nil
		})
		if err != nil {
			return wrote, err
		}
		wrote = true
	}
	return wrote, nil
}

// Delete removes users of the owner, in this order. It skips users that do not exist. At a user without the owner's mark, it stops and returns
// credential.ErrConflict.
func (s Session) Delete(ctx context.Context, owner credential.Owner, usernames ...string) error {
	for _, username := range usernames {
		state, err := s.Observe(ctx, owner, username, credential.Password{})
		switch {
		case err != nil:
			return err
		case state == credential.Absent:
			continue
		case state == credential.Foreign || state == credential.Unmarked:
			return credential.ErrConflict
		}
		if err := s.effect("remove", username, nil, func() error { delete(s.accounts, username); return nil }); err != nil {
			return err
		}
	}
	return nil
}
