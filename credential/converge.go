package credential

import (
	"context"
	"errors"
	"fmt"
)

// What keeps a user from having its credential until a person has looked, beside ErrConflict and ErrInvalid. Nothing was written.
var (
	// ErrMissing: the other system has the user, and the store has no credential. That never comes from a crash: the credential was
	// deleted, or lost. Restore it, or ask for another with Policy.Missing.
	ErrMissing = errors.New("the user is there, and its credential is not")
	// ErrDrifted: the other system does not accept the stored password, and Policy.Drift says to leave that.
	ErrDrifted = errors.New("the stored password is not the one that is in use")
)

// ErrUnproven tells that the other system does not accept yet what it was just given. Converge again later.
var ErrUnproven = errors.New("the system does not accept the credential yet")

// Blocked tells whether an error stays until a person has looked, so that trying again is of no use. Nothing was generated, changed or
// overwritten then.
func Blocked(err error) bool {
	for _, blocks := range []error{ErrConflict, ErrInvalid, ErrMissing, ErrDrifted} {
		if errors.Is(err, blocks) {
			return true
		}
	}
	return false
}

// State is what another system has of a user.
type State string

// The states of a user. A System that cannot tell returns an error: only its own word that there is no such user is Absent, and only
// its own word that the password is wrong is Refused.
const (
	// Absent: there is no such user.
	Absent State = "absent"
	// Accepted: the user is there for this owner, and the password is right.
	Accepted State = "accepted"
	// Refused: the user is there for this owner, and the password is wrong.
	Refused State = "refused"
	// Present: the user is there for this owner, and nobody can tell whether the password is right: there is none to try, or the
	// system lets nobody try.
	Present State = "present"
	// Foreign: the user is there for another owner.
	Foreign State = "foreign"
	// Unmarked: the user is there, and nothing tells whose it is.
	Unmarked State = "unmarked"
)

// System is where users have credentials: a database, a cache. Its methods may be called at the same time, and again after any
// error. Errors hold no password.
type System interface {
	// Observe tells what there is of a user. With a password it is tried whether it is right; the zero Password is none.
	Observe(ctx context.Context, owner Owner, username string, password Password) (State, error)
	// Create makes the user with the owner's mark, or returns an error if it is there.
	Create(ctx context.Context, owner Owner, credential Record) error
	// Set gives a user that is there the password and the owner's mark.
	Set(ctx context.Context, owner Owner, credential Record) error
}

// Policy is what may be done about what no crash leaves behind. The zero value changes the password of a user to the stored one, generates
// none for a user that is there, and takes over no user that carries no mark.
type Policy struct {
	// LeaveDrift leaves a password that is not the stored one as it is, with ErrDrifted.
	LeaveDrift bool
	// ReplaceMissing generates another credential for a user whose credential the store has lost. Whoever uses the old one is locked
	// out.
	ReplaceMissing bool
	// Adopt takes over a user without a mark, and gives it the stored password. One that another owner has marked is never taken over.
	Adopt bool
}

// User is a user of another system with a credential that is generated once.
type User struct {
	Once

	System System
	Policy Policy
}

// Converge makes the system have the user with the stored credential: it looks, decides, and does what is missing, the store first. It
// returns the credential when the system accepts it. Calling it again, at the same time, or after any error is safe. Where all is as it
// should be it writes nothing.
//
// What it decides is a table, in docs/concepts/credentials.md.
func (u User) Converge(ctx context.Context) (Record, error) {
	stored, err := u.Read(ctx)
	lost := errors.Is(err, ErrNotFound)
	if err != nil && !lost {
		return Record{}, err
	}
	state, err := u.observe(ctx, stored)
	if err != nil {
		return Record{}, err
	}
	do, err := u.Policy.decide(lost, state)
	if err != nil {
		return Record{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	if do == nothing {
		return stored, nil
	}
	if lost {
		if stored, err = u.generate(ctx); err != nil {
			return Record{}, err
		}
	}
	if err := u.apply(ctx, do, stored); err != nil {
		return Record{}, err
	}
	return stored, u.prove(ctx, stored)
}

func (u User) observe(ctx context.Context, stored Record) (State, error) {
	state, err := u.System.Observe(ctx, u.Owner, u.Username, stored.Password)
	if err != nil {
		return "", fmt.Errorf("look for the user %s: %w", u.Username, err)
	}
	return state, nil
}

func (u User) apply(ctx context.Context, do action, stored Record) error {
	if do == create {
		if err := u.System.Create(ctx, u.Owner, stored); err != nil {
			return fmt.Errorf("create the user %s: %w", u.Username, err)
		}
		return nil
	}
	if err := u.System.Set(ctx, u.Owner, stored); err != nil {
		return fmt.Errorf("set the password of the user %s: %w", u.Username, err)
	}
	return nil
}

// prove shows that the system accepts what it was given.
func (u User) prove(ctx context.Context, stored Record) error {
	state, err := u.observe(ctx, stored)
	if err == nil && state != Accepted && state != Present {
		err = fmt.Errorf("user %s is %s: %w", u.Username, state, ErrUnproven)
	}
	return err
}

// action is what is to be done in the other system, after the store has a credential.
type action string

const (
	nothing action = "nothing"
	create  action = "create"
	set     action = "set"
)

// decide is the table of tenant-and-database.md §2 for one system: what is done about a user, given whether the store has lost, or
// never had, its credential.
func (p Policy) decide(lost bool, state State) (action, error) {
	switch {
	case state == Absent:
		return create, nil
	case state == Foreign:
		return "", fmt.Errorf("the system has it marked for another owner: %w", ErrConflict)
	case state == Unmarked && !p.Adopt:
		return "", fmt.Errorf("the system has it without a mark: %w; remove it, or allow to adopt it", ErrConflict)
	case lost && !p.ReplaceMissing:
		return "", ErrMissing
	case state == Unmarked:
		return set, nil // So it gets its mark.
	case state == Accepted, state == Present && !lost:
		return nothing, nil
	case p.LeaveDrift && !lost:
		return "", ErrDrifted
	default:
		return set, nil
	}
}
