package credential

import (
	"context"
	"time"
)

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
	// Retired: the user is there for this owner, and may not log in.
	Retired State = "retired"
	// Foreign: the user is there for another owner.
	Foreign State = "foreign"
	// Unmarked: the user is there, and nothing tells whose it is.
	Unmarked State = "unmarked"
)

// Assignment is what a system is to make of a user that is there.
type Assignment struct {
	// Record has the user and the password.
	Record
	// Keep tells that what the system accepts of the user now stays accepted beside it, where it can hold two. Else only the Record is.
	Keep bool
	// Previous is what is to be kept, if that is known.
	Previous Record
}

// System is where users have credentials: a database, a cache. Its methods may be called at the same time, and again after any
// error. Errors hold no password.
type System interface {
	// Observe tells what there is of a user. With a password it is tried whether it is right; the zero Password is none.
	Observe(ctx context.Context, owner Owner, username string, password Password) (State, error)
	// Create makes the user with the owner's mark, or returns an error if it is there.
	Create(ctx context.Context, owner Owner, credential Record) error
	// Set gives a user that is there the password, the owner's mark and the right to log in.
	Set(ctx context.Context, owner Owner, change Assignment) error
}

// Given names a record that a system gave to a user, without its password. The system keeps it with the user, in the same change that sets the
// password, so that it shows when the store is older than the system.
type Given struct {
	Username   string
	Generation int
	Created    time.Time
}

// GivenOf names a record.
func GivenOf(record Record) Given {
	return Given{record.Username, record.Generation, record.Created.UTC().Truncate(time.Second)}
}

// IsZero reports whether it names no record.
func (g Given) IsZero() bool { return g.Generation == 0 }

// After reports whether g was generated after another one. A later record has a later Created; the generation decides only between equal times,
// as a store that has lost everything counts from 1 again.
func (g Given) After(other Given) bool {
	return g.Created.After(other.Created) || g.Created.Equal(other.Created) && g.Generation > other.Generation
}

// Beside is what a Rotator has of an owner beside a current credential.
type Beside struct {
	// Accepted reports whether the system accepts anything of the owner beside the current credential.
	Accepted bool
	// Latest is the latest that the system keeps of those of the owner's users that may log in; the zero Given if it keeps none of them, as
	// with users that were made by earlier releases.
	Latest Given
	// Current is the one that it keeps of the current credential's user, whether that may log in or not; zero as above.
	Current Given
}

// Rotator is a System in which a credential can be taken out of use when another has taken its place. Others are the owner's other users,
// where each has one password; where a user has two, there are none.
//
// It keeps with each user which record Create and Set gave it last: see Given.
type Rotator interface {
	System
	// Superseded returns what the system has of the owner beside the current credential. It writes nothing.
	Superseded(ctx context.Context, owner Owner, current Record, others []string) (Beside, error)
	// Keep keeps the Given of the current credential with its user, and changes nothing else of it. If the user is not there it does nothing.
	Keep(ctx context.Context, owner Owner, current Record) error
	// Retire makes the system accept the current credential alone. What is logged in already may stay so.
	Retire(ctx context.Context, owner Owner, current Record, others []string) error
}
