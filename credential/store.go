package credential

import (
	"context"
	"errors"
	"time"
)

// The errors of a Store. Any other error gives no information about its content.
var (
	// ErrExists means that the generation already exists. It was not overwritten.
	ErrExists = errors.New("the name already exists in the store")
	// ErrConflict means that the stored value does not have the ownership mark of this owner. It was not used, changed or deleted.
	ErrConflict = errors.New("not marked as owned by this owner")
	// ErrInvalid means that the stored value has the owner's mark, but is not a credential or is another one than expected. It was not
	// overwritten.
	ErrInvalid = errors.New("not a valid credential")
	// ErrSuperseded means that readers or the system already have a later generation, which was not overwritten. The caller's knowledge of the
	// store is old: read again.
	ErrSuperseded = errors.New("a newer generation is already in use; retry later")
	// ErrUnwritable means that the store refuses to write the copy for readers, until a person acts. Converge has changed nothing in the system:
	// it accepts what readers have.
	ErrUnwritable = errors.New("the copy for readers cannot be written")
)

// Owner identifies the owner of a credential: an operator, and the object for which it generated the credential. It does not contain the
// object's uid. So an object that is deleted and created again has the same credentials.
type Owner struct {
	// Operator is the identity of the operator.
	Operator string
	// Namespace and Name are those of the object. Namespace is "" for cluster-scoped objects.
	Namespace, Name string
}

// String returns the ownership mark that a store keeps with the credential.
func (o Owner) String() string { return o.Operator + "/" + o.Namespace + "/" + o.Name }

// Record is one generation of a credential, as a store keeps it.
type Record struct {
	// Username is the user that logs in with the password.
	Username string
	// Password is the generated password.
	Password Password
	// Generation counts from 1. Each rotation adds one generation, and changes no earlier one.
	Generation int
	// Request is the ID of the rotation request for which the record was generated; "" if there was none.
	Request string
	// Created is when the record was generated, in UTC and in whole seconds. It is later than that of every earlier record, even if clocks
	// differ.
	Created time.Time
	// Overlap is how long the previous record is accepted after this record is published. NoOverlap means not at all. The value 0 means
	// unknown, as in records that Once.Ensure generates.
	Overlap time.Duration
}

// NoOverlap is the Record.Overlap of a rotation in place: the previous record is not accepted any more.
const NoOverlap time.Duration = -1

// Found is what a store has under a name.
type Found struct {
	// Records are the generations, in ascending order.
	Records []Record
	// Published is the generation that readers get; 0 if there is no copy for readers, or if the copy equals none of Records.
	Published int
	// Since is when the published generation was published, by the clock of the store or of this process.
	Since time.Time
	// Copy is the generation that the copy for readers names, even if the copy differs from that record or the record does not exist. It is 0
	// if there is no copy, or if the copy lacks a generation, a username or a password.
	Copy int
}

// Store keeps credentials, and does not overwrite them. Under each name it has generations, each of which is created once, and a copy of one
// of them for readers, which is published under the name itself. Its methods must be safe for concurrent use. Errors must name the credential
// and must not contain a value. To test an implementation, use credentialtest.Contract.
type Store interface {
	// Create stores a record as one generation of a name. It returns ErrExists if that generation exists. After any other error, the record
	// may be stored or not.
	Create(ctx context.Context, name string, owner Owner, record Record) error
	// Read returns the generations of a name, starting with the generation from, which is at least 1. Of the generations before the published
	// one, it need only return the last. If nothing exists, it returns the zero Found. It returns ErrConflict or ErrInvalid if a stored value
	// cannot be used.
	Read(ctx context.Context, name string, owner Owner, from int) (Found, error)
	// Publish makes a record the copy for readers of the name. It returns ErrConflict if the existing copy does not have the owner's mark. It
	// returns ErrSuperseded, and does not overwrite the copy, if the copy names a later generation, even if another writer has written that
	// copy during this call. If another writer publishes the same record at the same time, Publish returns no error.
	Publish(ctx context.Context, name string, owner Owner, record Record) error
	// CheckPublish tests whether Publish would work, and writes nothing. It returns ErrUnwritable if the store would refuse it, and any other
	// error of Publish. A store that cannot tell returns nil.
	CheckPublish(ctx context.Context, name string, owner Owner, record Record) error
	// Delete removes the copy for readers, and then all generations, starting with the last one. So an interrupted Delete can be repeated. It
	// returns no error if nothing exists. It returns ErrConflict, and does not delete the value, for a value without the owner's mark.
	Delete(ctx context.Context, name string, owner Owner) error
}
