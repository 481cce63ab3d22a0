package credentialtest

import (
	"context"

	"github.com/einmal-operators/einmal/credential"
)

// Session is how one process of an operator sees the Users of a system. It is a credential.Rotator, and has what operators do to users
// beside that. Its methods may be called at the same time.
//
// Each write is an effect, so that einmaltest.Explore lets it go wrong: before it is done, or after it, with its answer lost. An effect
// that gives a password has it as its value, so that Explore finds a password that was replaced. What is only looked at is no effect,
// and does not fail.
type Session struct {
	*Users

	// Effect does a write. In a simulated world it is the IdempotentEffect of the einmaltest.Process that the session belongs to; nil does it and
	// no more, for tests in which nothing goes wrong.
	Effect func(name string, do func() (value any, err error)) error
	// Grants is what users are to have beside their credential: a text that stands for their limits, rights or keys. Those that Create makes
	// have it; others get it by Converge.
	Grants string
}

// effect makes a change of a user. The value tells changes of the same name apart.
func (s Session) effect(what, username string, value any, change func() error) error {
	name := what + " " + s.called(username)
	do := func() (any, error) { return value, s.write(name, change) }
	if s.Effect == nil {
		_, err := do()
		return err
	}
	return s.Effect(name, do)
}

// Observe implements credential.System. It has no error.
func (s Session) Observe(_ context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(owner, username, password), nil
}

// Create implements credential.System, with credential.ErrExists for a user that is there. The user has the Grants.
func (s Session) Create(_ context.Context, owner credential.Owner, record credential.Record) error {
	return s.effect("give a password to", record.Username, record.Password.Reveal(), func() error {
		if s.accounts[record.Username] != nil {
			return credential.ErrExists
		}
		s.put(record.Username, &account{owner: owner, grants: s.Grants})
		return s.give(owner, credential.Assignment{Record: record})
	})
}

// Set implements credential.System. A user that is unmarked is marked. It is credential.ErrConflict for one that is marked for another
// owner, and an error, without a change, for one that is not there or has no room for the password.
func (s Session) Set(_ context.Context, owner credential.Owner, change credential.Assignment) error {
	return s.effect("give a password to", change.Username, change.Password.Reveal(), func() error { return s.give(owner, change) })
}

// Superseded implements credential.Rotator. It has no error.
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

// Keep implements credential.Rotator. Users of others are left alone.
func (s Session) Keep(_ context.Context, owner credential.Owner, current credential.Record) error {
	return s.effect("keep the generation of", current.Username, current.Generation, func() error {
		if known := s.accounts[current.Username]; known != nil && known.owner == owner {
			known.given = credential.GivenOf(current)
		}
		return nil
	})
}

// Retire implements credential.Rotator. It is credential.ErrUnproven, without a change, if the current credential is not accepted: nobody
// is locked out for one that does not work. Users of others are left alone.
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

// Converge gives the owner's users the Grants, where they have others, and tells whether it wrote. Users that are not there, or not
// the owner's, are left alone.
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

// Delete removes the owner's users, in this order. One that is not there is removed; at one that is not the owner's it stops, with
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
