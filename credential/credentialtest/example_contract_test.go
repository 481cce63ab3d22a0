package credentialtest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// vault is a Store of your own: here in memory, elsewhere a client of a secret manager.
type vault struct {
	mu          sync.Mutex
	generations map[int]entry // Of one name. A real store has many.
	copied      *entry
}

// entry is one stored value. The zero Record stands for a value that is not a credential.
type entry struct {
	credential.Record

	owner credential.Owner
	since time.Time
}

// Create stores a generation, unless there is one.
func (v *vault) Create(_ context.Context, name string, owner credential.Owner, record credential.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, there := v.generations[record.Generation]; there {
		return fmt.Errorf("%s, generation %d: %w", name, record.Generation, credential.ErrExists)
	}
	v.generations[record.Generation] = entry{Record: record, owner: owner}
	return nil
}

// Read returns the generations, from the one before the copy on.
func (v *vault) Read(_ context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found credential.Found
	if v.copied != nil {
		if v.copied.owner != owner {
			return found, fmt.Errorf("%s: %w", name, credential.ErrConflict)
		}
		found.Copy = v.copied.Generation
	}
	for _, generation := range slices.Sorted(maps.Keys(v.generations)) {
		one := v.generations[generation]
		switch {
		case generation < max(from, found.Copy-1):
			continue
		case one.owner != owner:
			return credential.Found{}, fmt.Errorf("%s, generation %d: %w", name, generation, credential.ErrConflict)
		case one.Generation != generation:
			return credential.Found{}, fmt.Errorf("%s, generation %d: %w", name, generation, credential.ErrInvalid)
		}
		found.Records = append(found.Records, one.Record)
		if v.copied != nil && v.copied.Record == one.Record {
			found.Published, found.Since = generation, v.copied.since
		}
	}
	return found, nil
}

// CheckPublish returns nil: nothing can keep this store from writing.
func (*vault) CheckPublish(context.Context, string, credential.Owner, credential.Record) error {
	return nil
}

// Publish writes the copy for readers, but not over a later one.
func (v *vault) Publish(_ context.Context, name string, owner credential.Owner, record credential.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.copied == nil:
	case v.copied.owner != owner:
		return fmt.Errorf("%s: %w", name, credential.ErrConflict)
	case v.copied.Generation > record.Generation:
		return fmt.Errorf("%s: %w", name, credential.ErrSuperseded)
	case v.copied.Record == record:
		return nil
	}
	v.copied = &entry{Record: record, owner: owner, since: time.Now()}
	return nil
}

// Delete removes everything, unless a part belongs to another owner.
func (v *vault) Delete(_ context.Context, name string, owner credential.Owner) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.generations {
		if one.owner != owner {
			return fmt.Errorf("%s: %w", name, credential.ErrConflict)
		}
	}
	if v.copied != nil && v.copied.owner != owner {
		return fmt.Errorf("%s: %w", name, credential.ErrConflict)
	}
	clear(v.generations)
	v.copied = nil
	return nil
}

// spoil replaces a value by one that is not a credential, as a person could. It keeps the owner's mark.
func (v *vault) spoil(generation int, owner credential.Owner) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if generation == 0 {
		v.copied = &entry{owner: owner}
		return
	}
	v.generations[generation] = entry{owner: owner}
}

// Passwords are kept in a store of your own. How do you know that it never replaces one that is in use? It passes the Contract. Each test of the
// contract gets a Subject of its own: an empty store, a name, and a function that spoils a value behind its back.
func TestTheVaultIsAStore(t *testing.T) {
	t.Parallel()
	credentialtest.Contract(t, func(t *testing.T) credentialtest.Subject {
		t.Helper()
		store := &vault{generations: map[int]entry{}}
		return credentialtest.Subject{Store: store, Name: "shop-db", Spoil: func(t *testing.T, generation int, owner credential.Owner) {
			t.Helper()
			store.spoil(generation, owner)
		}}
	})
}

// Users log in to a system of your own. How do you know that a revocation cannot be delayed, and that no older password comes back? It passes the
// SystemContract: here the users in memory, with one password for each user and with two.
func TestTheUsersAreASystem(t *testing.T) {
	t.Parallel()
	for alternate, room := range map[string]int{"": 2, "app_b": 1} {
		t.Run(strconv.Itoa(room), func(t *testing.T) {
			t.Parallel()
			credentialtest.SystemContract(t, func(t *testing.T) credentialtest.SystemSubject {
				t.Helper()
				users := &credentialtest.Users{Room: room}
				return credentialtest.SystemSubject{
					System: credentialtest.Session{Users: users}, Owner: credential.Owner{Operator: "op.example.com", Name: "one"},
					Username: "app_a", Alternate: alternate,
					Accepts: func(_ *testing.T, record credential.Record) bool { return users.Accepts(record) },
				}
			})
		})
	}
}
