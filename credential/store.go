package credential

import (
	"context"
	"errors"
	"time"
)

// What a Store says. Every other error says nothing of what the store holds.
var (
	// ErrExists: there is something under the name, and it stays.
	ErrExists = errors.New("the store has something of that name already")
	// ErrConflict: what is there is not marked as the owner's. It is not used, changed or deleted.
	ErrConflict = errors.New("it belongs to somebody else")
	// ErrInvalid: what is there is the owner's, and not a credential, or not the one that it should be. It is not overwritten.
	ErrInvalid = errors.New("it is no such credential")
	// ErrSuperseded: readers get a newer generation already, which stays. The caller has read the store before that: read it again.
	ErrSuperseded = errors.New("readers get a newer generation already: call again later")
)

// Owner is whom a credential belongs to: an operator, and the object that it made it for. It does not hold the object's uid, so
// that an object which is deleted and made again has its credentials again.
type Owner struct {
	// Operator is the identity of the operator.
	Operator string
	// Namespace and Name are of the object; the namespace is "" for one that is in none.
	Namespace, Name string
}

// String is the mark that a store keeps.
func (o Owner) String() string { return o.Operator + "/" + o.Namespace + "/" + o.Name }

// Record is a credential as it is stored, all of it in one place.
type Record struct {
	Username string
	Password Password
	// Generation counts from 1. Each rotation stores one more, and changes none.
	Generation int
	// Request is the id of the rotation that was asked for and that it is the answer to; "" if nobody had asked.
	Request string
	// Created is when it was generated, in UTC and in whole seconds. It is later than that of every record before it, whatever the clocks say.
	Created time.Time
	// Overlap is how long the rotation that made this record lets the record before it be accepted, from when readers get this one. NoOverlap is
	// not at all; 0 means that the record does not say it, as those of earlier releases do not.
	Overlap time.Duration
}

// NoOverlap is the Record.Overlap of a rotation in place.
const NoOverlap time.Duration = -1

// Found is what a store has under a name.
type Found struct {
	// Records are its generations, ascending.
	Records []Record
	// Published is the generation that readers of the name itself get; 0 if they get nothing, or something that is none of Records.
	Published int
	// Since is when readers began to get it, as the store's clock or ours says.
	Since time.Time
	// Copy is the generation that the copy for readers names, also if it differs from that record in something else, or that record is not
	// there; 0 if there is no copy, or none that names a generation with a username and a password.
	Copy int
}

// Store keeps credentials, and does not overwrite them. Under a name it has generations, each of which is created once, and a copy of one
// of them for readers, which is published under the name itself. Its methods may be called at the same time. Errors name the credential
// and never hold a value.
type Store interface {
	// Create stores a record as its generation of a name, if there is none yet: else it is ErrExists. When it fails otherwise, the record
	// may be stored or not.
	Create(ctx context.Context, name string, owner Owner, record Record) error
	// Read returns the generations of a name from one on, which is at least 1, without those that readers have left behind: of what comes
	// before the one that is published it need only return the last. Where there is nothing, Found is empty. It is ErrConflict or
	// ErrInvalid if something is there that cannot be used.
	Read(ctx context.Context, name string, owner Owner, from int) (Found, error)
	// Publish gives readers of the name a record. What it overwrites is the owner's, else it is ErrConflict. It overwrites no copy that names a
	// later generation: that is ErrSuperseded, also if the other writer came between the look at the copy and the write. If another writer
	// publishes the same at the same time, that is not an error.
	Publish(ctx context.Context, name string, owner Owner, record Record) error
	// Delete removes what readers get and then all generations, the last one first, so that a Delete which is broken off can go on. What is
	// not there is removed; what is another's is ErrConflict, and stays.
	Delete(ctx context.Context, name string, owner Owner) error
}
