package credential

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnsettled tells that the store says both that a name is taken and that nothing is there: it has not settled, or somebody deletes what
// is there. Nothing was generated in vain that anybody could use; call again later.
var ErrUnsettled = errors.New("the store is not settled: call again later")

// Once is a credential that is generated once.
type Once struct {
	Store Store
	// Name is where the store keeps it. It is made of what does not change: never of a status or of chance.
	Name  string
	Owner Owner
	// Username is whom it is for. A record of another user is ErrInvalid.
	Username string
	// Generate makes the password; nil is the function Generate.
	Generate func() (Password, error)
}

// Ensure returns the credential from the store, and generates it if the store says that there is none. It returns only what the store
// has acknowledged or gives back. Calling it again, at the same time, or after any error is safe, and returns the same. Of errors see
// Blocked.
func (o Once) Ensure(ctx context.Context) (Record, error) {
	found, err := o.Read(ctx)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	return o.generate(ctx)
}

// Read returns the credential from the store, ErrNotFound if the store says that there is none.
func (o Once) Read(ctx context.Context) (Record, error) {
	found, err := o.Store.Read(ctx, o.Name, o.Owner)
	if err != nil {
		return Record{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if found.Username != o.Username {
		return Record{}, fmt.Errorf("credential %s is for the user %q, not %q: %w; it stays as it is", o.Name, found.Username, o.Username, ErrInvalid)
	}
	return found, nil
}

// generate makes a credential where the store has none, or returns that of somebody who was faster.
func (o Once) generate(ctx context.Context) (Record, error) {
	generate := o.Generate
	if generate == nil {
		generate = Generate
	}
	password, err := generate()
	if err != nil {
		return Record{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if password.IsZero() {
		return Record{}, fmt.Errorf("credential %s: the generated password is empty", o.Name)
	}
	made := Record{Username: o.Username, Password: password}
	err = o.Store.Create(ctx, o.Name, o.Owner, made)
	if err == nil {
		return made, nil
	}
	if !errors.Is(err, ErrExists) {
		return Record{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	// Somebody was faster, or it is our own request whose answer was lost.
	found, err := o.Read(ctx)
	if errors.Is(err, ErrNotFound) {
		return Record{}, fmt.Errorf("credential %s: %w", o.Name, ErrUnsettled)
	}
	return found, err
}
