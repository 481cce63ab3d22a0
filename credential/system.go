package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// State is the state of a user in another system.
type State string

// The states of a user. If the state cannot be determined, a System returns an error: a user is Absent only if the system says that it does
// not exist, and a password is Refused only if the system says that it is wrong.
const (
	// Absent means that the user does not exist.
	Absent State = "absent"
	// Accepted means that the user exists for this owner, and the password is right.
	Accepted State = "accepted"
	// Refused means that the user exists for this owner, and the password is wrong.
	Refused State = "refused"
	// Present means that the user exists for this owner, and it is unknown whether the password is right, because none was given or it
	// cannot be tested.
	Present State = "present"
	// Retired means that the user exists for this owner and cannot log in.
	Retired State = "retired"
	// Foreign means that the user exists for another owner.
	Foreign State = "foreign"
	// Unmarked means that the user exists without an ownership mark.
	Unmarked State = "unmarked"
)

// Assignment is the desired state of an existing user.
type Assignment struct {
	// Record has the user and the password.
	Record
	// Keep lets the system continue to accept the user's current credential too, if it supports two. Otherwise it accepts only the Record.
	Keep bool
	// Previous is the credential to keep, if it is known.
	Previous Record
}

// ErrPartial means that a system of several members, such as the nodes of a cache, did something on at least one of them, and not on all. The
// error names the others. What Observe and Superseded return with it is that of the members that answered. One member that is down must not
// keep a leaked password alive on the others, so Converge goes on with those that answer, and returns ErrPartial in the end.
var ErrPartial = errors.New("not done on all members")

// ErrUnusable means that a user has the right password and still cannot log in, for example because of a limit or of a setting of its database. Observe
// returns it with Accepted. Converge then does what it does for Accepted, and returns ErrUnusable in the end, with the Outcome.
var ErrUnusable = errors.New("the password is right, but the user cannot log in")

// System is a system in which users log in with credentials, such as a database or a cache. Its methods must be safe for concurrent use and for
// repetition after any error. Errors must not contain a password. A system of several members returns ErrPartial if only some did their part.
type System interface {
	// Observe returns the state of a user. It tests the password unless that is zero. With Accepted, the error can be ErrUnusable.
	Observe(ctx context.Context, owner Owner, username string, password Password) (State, error)
	// Create creates the user with the owner's mark. It returns an error if the user exists.
	Create(ctx context.Context, owner Owner, credential Record) error
	// Set gives an existing user the password, the owner's mark and the right to log in. It must not depend on a login, which the holder of the
	// previous password can delay: Converge verifies the password afterwards. If the system stores the Given, Set returns ErrSuperseded, and
	// changes nothing, if the user got a later record: see Given.CheckSet.
	Set(ctx context.Context, owner Owner, change Assignment) error
}

// Given identifies the record that a user of a system got last, without its password. The system stores it with the user, in the same change
// that sets the password. So Converge can detect that the store is older than the system.
type Given struct {
	// Username, Generation and Created are those of the Record. Created is in whole seconds.
	Username   string
	Generation int
	Created    time.Time
}

// GivenOf returns the Given of a record.
func GivenOf(record Record) Given {
	return Given{record.Username, record.Generation, record.Created.UTC().Truncate(time.Second)}
}

// IsZero reports whether g identifies no record.
func (g Given) IsZero() bool { return g.Generation == 0 }

// After reports whether g was generated after other. It compares Created, and compares the generations only if the times are equal, because a
// store that has lost everything counts from 1 again.
func (g Given) After(other Given) bool {
	return g.Created.After(other.Created) || g.Created.Equal(other.Created) && g.Generation > other.Generation
}

// CheckSet returns ErrSuperseded if g was generated after a record. Call it in Set with what the user got last. So a process that was frozen after
// it read the store sets no password that was revoked meanwhile.
func (g Given) CheckSet(record Record) error {
	if !g.After(GivenOf(record)) {
		return nil
	}
	return fmt.Errorf("user %s has the credential of generation %d, created %s, not setting generation %d, created %s: %w", record.Username,
		g.Generation, g.Created.UTC().Format(time.RFC3339), record.Generation, record.Created.UTC().Format(time.RFC3339), ErrSuperseded)
}

// Beside describes what a Rotator has of an owner in addition to the current credential.
type Beside struct {
	// Accepted reports whether the system accepts any other credential of the owner.
	Accepted bool
	// Latest is the latest Given of those users of the owner that can log in. It is zero if none can.
	Latest Given
	// Current is the Given of the current credential's user, even if that user cannot log in. It is zero if the user does not exist.
	Current Given
}

// Rotator is a System that can retire a credential after another one has replaced it. The argument others contains the owner's other users, if
// each user has one password. It is empty if a user can have two passwords.
//
// A Rotator stores with each user which record Create and Set gave it last: see Given.
type Rotator interface {
	System
	// Superseded returns what the system has of the owner in addition to the current credential. It writes nothing.
	Superseded(ctx context.Context, owner Owner, current Record, others []string) (Beside, error)
	// Retire makes the system reject all credentials of the owner except the current one. Open sessions may continue.
	Retire(ctx context.Context, owner Owner, current Record, others []string) error
}
