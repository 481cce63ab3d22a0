package credential

import (
	"context"
	"errors"
)

// What a Store says. Every other error says nothing of what the store holds.
var (
	// ErrNotFound: the store says itself that there is nothing under the name.
	ErrNotFound = errors.New("the store has no such credential")
	// ErrExists: there is something under the name, and it stays.
	ErrExists = errors.New("the store has something of that name already")
	// ErrConflict: what is there is not marked as the owner's. It is not used, changed or deleted.
	ErrConflict = errors.New("it belongs to somebody else")
	// ErrInvalid: what is there is the owner's, and not a credential, or not the one that it should be. It is not overwritten.
	ErrInvalid = errors.New("it is no such credential")
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
}

// Store keeps credentials, and does not overwrite them. Its methods may be called at the same time. Errors name the credential and
// never hold a value.
type Store interface {
	// Create stores a record under a name that nothing has yet: else it is ErrExists. When it fails otherwise, the record may
	// be stored or not.
	Create(ctx context.Context, name string, owner Owner, record Record) error
	// Read returns the record of a name: ErrNotFound, ErrConflict or ErrInvalid if it cannot.
	Read(ctx context.Context, name string, owner Owner) (Record, error)
	// Delete removes a record of the owner. What is not there is removed; what is another's is ErrConflict, and stays.
	Delete(ctx context.Context, name string, owner Owner) error
}
