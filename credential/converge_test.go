package credential_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
)

// silent is a system that does not answer, or lies about what it has done.
type silent struct {
	*users

	observes, changes error
}

func (s silent) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	if s.observes != nil {
		return "", s.observes
	}
	return s.users.Observe(ctx, owner, username, password)
}

func (s silent) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	return errors.Join(s.users.Create(ctx, owner, record), s.changes)
}

// came is what came of a convergence: what went wrong, and what was done.
type came struct {
	Err                error
	Generated          int
	Stored, Set, Tried int // writes of the store, writes of the system, passwords tried
}

// tenant-and-database.md §2, the decision table for one system: each state of the store with each of the system, under each policy that
// matters there. What is blocked has written nothing; and after each row that is not blocked, another convergence writes nothing.
func TestTheDecisionTable(t *testing.T) {
	t.Parallel()
	good := map[string]string{"username": "app", "password": "stored"}
	stores := map[string]map[string]string{"none": nil, "good": good, "malformed": {"username": "app"}, "of another user": {"username": "x", "password": "p"}}
	ours, theirs := testOwner().String(), "other/x/y"
	leave, replace, adopt := credential.Policy{LeaveDrift: true}, credential.Policy{ReplaceMissing: true}, credential.Policy{Adopt: true}
	both := credential.Policy{ReplaceMissing: true, Adopt: true}
	for _, row := range []struct {
		store, mark, password string // what there is; no password is no user
		policy                credential.Policy
		want                  came
	}{
		{"none", "", "", credential.Policy{}, came{Generated: 1, Stored: 1, Set: 1, Tried: 1}},
		{"good", "", "", credential.Policy{}, came{Set: 1, Tried: 1}},
		{"good", ours, "stored", credential.Policy{}, came{Tried: 1}},
		{"good", ours, "other", credential.Policy{}, came{Set: 1, Tried: 2}},
		{"good", ours, "other", leave, came{Err: credential.ErrDrifted, Tried: 1}},
		{"good", ours, "stored", leave, came{Tried: 1}},
		{"none", ours, "lost", credential.Policy{}, came{Err: credential.ErrMissing}},
		{"none", ours, "lost", leave, came{Err: credential.ErrMissing}},
		{"none", ours, "lost", replace, came{Generated: 1, Stored: 1, Set: 1, Tried: 1}},
		{"malformed", ours, "stored", replace, came{Err: credential.ErrInvalid}},
		{"malformed", "", "", replace, came{Err: credential.ErrInvalid}},
		{"of another user", ours, "stored", replace, came{Err: credential.ErrInvalid}},
		{"good", theirs, "stored", both, came{Err: credential.ErrConflict}},
		{"none", theirs, "x", both, came{Err: credential.ErrConflict}},
		{"good", "", "stored", credential.Policy{}, came{Err: credential.ErrConflict}},
		{"none", "", "x", replace, came{Err: credential.ErrConflict}},
		{"good", "", "x", adopt, came{Set: 1, Tried: 1}},
		{"none", "", "x", adopt, came{Err: credential.ErrMissing}},
		{"none", "", "x", both, came{Generated: 1, Stored: 1, Set: 1, Tried: 1}},
	} {
		t.Run(fmt.Sprintf("store %s, mark %q, password %q, %+v", row.store, row.mark, row.password, row.policy), func(t *testing.T) {
			t.Parallel()
			f, known := newFixture(t), &users{marks: map[string]string{}, passwords: map[string][]string{}}
			f.plant(t, stores[row.store])
			if row.password != "" {
				known.marks["app"], known.passwords["app"] = row.mark, []string{row.password}
			}
			user := credential.User{Once: f.once(), System: known, Policy: row.policy}
			if diff := cmp.Diff(row.want, f.converge(t, user, known), cmp.Comparer(sameError)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := came{Tried: 1}
			if row.want.Err != nil {
				again = row.want
			}
			if diff := cmp.Diff(again, f.converge(t, user, known), cmp.Comparer(sameError)); diff != "" {
				t.Errorf("once more (-want +got):\n%s", diff)
			}
		})
	}
}

// plant makes a Secret of ours with this in it; nil is none.
func (f *fixture) plant(t *testing.T, data map[string]string) {
	t.Helper()
	if data == nil {
		return
	}
	if err := f.api.Create(t.Context(), planted(testOwner().String(), data)); err != nil {
		t.Fatal(err)
	}
}

func sameError(want, got error) bool { return errors.Is(got, want) || errors.Is(want, got) }

// converge converges a user and tells what that did. What is accepted in the end is what the store has.
func (f *fixture) converge(t *testing.T, user credential.User, known *users) came {
	t.Helper()
	generated, writes, tried, version := f.generated, known.writes, known.proofs, f.version(t)
	got, err := user.Converge(t.Context())
	now := came{Err: err, Generated: f.generated - generated, Set: known.writes - writes, Tried: known.proofs - tried}
	if f.version(t) != version {
		now.Stored = 1
	}
	if credential.Blocked(err) != (err != nil) {
		t.Errorf("%v: blocked is %t", err, credential.Blocked(err))
	}
	if err != nil {
		return now
	}
	stored, err := user.Read(t.Context())
	if had := known.had("app"); err != nil || stored != got || had[len(had)-1] != stored.Password.Reveal() {
		t.Errorf("the system has another password than the store: %v", err)
	}
	return now
}

// version is that of the Secret, "" if there is none.
func (f *fixture) version(t *testing.T) string {
	t.Helper()
	secret := planted("", nil)
	err := f.api.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return secret.ResourceVersion
}

// tenant-and-database.md §2, protocol 2: an error is not absence. Who does not answer decides nothing, and a lost answer is caught up with.
func TestWhatIsNotKnownDecidesNothing(t *testing.T) {
	t.Parallel()
	f, known := newFixture(t), &users{}
	user := credential.User{Once: f.once(), System: silent{users: known, observes: errBroken}}
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || credential.Blocked(err) || f.generated+known.writes > 0 || f.version(t) != "" {
		t.Errorf("a system that does not answer: %v, %d generated", err, f.generated)
	}
	f.store.reads = []error{errBroken}
	user.System = known
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || f.generated+known.writes > 0 {
		t.Errorf("a store that does not answer: %v, %d generated", err, f.generated)
	}
	user.System = silent{users: known, changes: errBroken}
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || f.generated != 1 {
		t.Errorf("a lost answer: %v, %d generated", err, f.generated)
	}
	if _, err := user.Converge(t.Context()); err != nil || f.generated != 1 || known.writes != 1 {
		t.Errorf("after it: %v, %d generated, %d writes", err, f.generated, known.writes)
	}
}
