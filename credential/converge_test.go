package credential_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// silent is a system that does not answer, or lies about what it has done. It is no Rotator.
type silent struct {
	credential.System

	observes, changes error
}

func (s silent) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	if s.observes != nil {
		return "", s.observes
	}
	return s.System.Observe(ctx, owner, username, password)
}

func (s silent) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	return errors.Join(s.System.Create(ctx, owner, record), s.changes)
}

// came is what came of a convergence: what went wrong, and what was done.
type came struct {
	Err                error
	Generated          int
	Stored, Set, Tried int // writes of the store, writes of the system, passwords tried
}

// Each state of the store with each of the system, under each policy that
// matters there. What is blocked has written nothing; and after each row that is not blocked, another convergence writes nothing.
func TestTheDecisionTable(t *testing.T) {
	t.Parallel()
	stores := map[string]map[string]string{"none": nil, "good": good("stored"), "malformed": {"username": "app"}, "of another user": with(good("p"), "username", "x")}
	none, ours, theirs := credential.Owner{}, testOwner(), credential.Owner{Operator: "other", Namespace: "x", Name: "y"}
	leave, replace, adopt := credential.Policy{LeaveDrift: true}, credential.Policy{ReplaceMissing: true}, credential.Policy{Adopt: true}
	both := credential.Policy{ReplaceMissing: true, Adopt: true}
	for _, row := range []struct {
		store    string // what there is; no password is no user
		owner    credential.Owner
		password string
		policy   credential.Policy
		want     came
	}{
		{"none", none, "", credential.Policy{}, came{Generated: 1, Stored: 2, Set: 1, Tried: 1}},
		{"good", none, "", credential.Policy{}, came{Set: 1, Tried: 1}},
		{"good", ours, "stored", credential.Policy{}, came{Tried: 1}},
		{"good", ours, "other", credential.Policy{}, came{Set: 1, Tried: 2}},
		{"good", ours, "other", leave, came{Err: credential.ErrDrifted, Tried: 1}},
		{"good", ours, "stored", leave, came{Tried: 1}},
		{"none", ours, "lost", credential.Policy{}, came{Err: credential.ErrMissing}},
		{"none", ours, "lost", leave, came{Err: credential.ErrMissing}},
		{"none", ours, "lost", replace, came{Generated: 1, Stored: 2, Set: 1, Tried: 2}},
		{"malformed", ours, "stored", replace, came{Err: credential.ErrInvalid}},
		{"malformed", none, "", replace, came{Err: credential.ErrInvalid}},
		{"of another user", ours, "stored", replace, came{Err: credential.ErrInvalid}},
		{"good", theirs, "stored", both, came{Err: credential.ErrConflict}},
		{"none", theirs, "x", both, came{Err: credential.ErrConflict}},
		{"good", none, "stored", credential.Policy{}, came{Err: credential.ErrConflict}},
		{"none", none, "x", replace, came{Err: credential.ErrConflict}},
		{"good", none, "x", adopt, came{Set: 1, Tried: 1}},
		{"none", none, "x", adopt, came{Err: credential.ErrMissing}},
		{"none", none, "x", both, came{Generated: 1, Stored: 2, Set: 1, Tried: 1}},
	} {
		t.Run(fmt.Sprintf("store %s, mark %q, password %q, %+v", row.store, row.owner, row.password, row.policy), func(t *testing.T) {
			t.Parallel()
			f, known := newFixture(t), &credentialtest.Users{}
			f.plant(t, stores[row.store])
			if row.password != "" {
				known.Plant("app", row.owner, credential.NewPassword(row.password))
			}
			user := credential.User{Once: f.once(), System: silent{System: credentialtest.Session{Users: known}}, Policy: row.policy}
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

// plant makes Secrets of ours with this in them, that of the first generation and that for readers; nil is none.
func (f *fixture) plant(t *testing.T, data map[string]string) {
	t.Helper()
	if data == nil {
		return
	}
	for _, name := range []string{"app-db", "app-db.g1"} {
		secret := planted(testOwner().String(), data)
		secret.Name = name
		if err := f.api.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
}

func sameError(want, got error) bool { return errors.Is(got, want) || errors.Is(want, got) }

// converge converges a user and tells what that did. What is accepted in the end is what the store has.
func (f *fixture) converge(t *testing.T, user credential.User, known *credentialtest.Users) came {
	t.Helper()
	generated, stores, writes, tried := f.generated, f.store.writes, known.Writes(), known.Tried()
	got, err := user.Converge(t.Context())
	now := came{
		Err: err, Generated: f.generated - generated, Stored: f.store.writes - stores, Set: known.Writes() - writes, Tried: known.Tried() - tried,
	}
	if credential.Blocked(err) != (err != nil) {
		t.Errorf("%v: blocked is %t", err, credential.Blocked(err))
	}
	if err != nil {
		return now
	}
	stored, err := f.store.Read(t.Context(), "app-db", testOwner(), 1)
	if err != nil || len(stored.Records) != 1 || stored.Published != 1 || stored.Records[0] != got.Record || !known.Accepts(got.Record) {
		t.Errorf("the system has another password than the store: %v", err)
	}
	return now
}

// An error is not absence. Who does not answer decides nothing, and a lost answer is caught up with.
func TestWhatIsNotKnownDecidesNothing(t *testing.T) {
	t.Parallel()
	f, known := newFixture(t), &credentialtest.Users{}
	system := credentialtest.Session{Users: known}
	user := credential.User{Once: f.once(), System: silent{System: system, observes: errBroken}}
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || credential.Blocked(err) || f.generated+known.Writes()+f.store.writes > 0 {
		t.Errorf("a system that does not answer: %v, %d generated", err, f.generated)
	}
	f.store.reads = []error{errBroken}
	user.System = system
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || f.generated+known.Writes() > 0 {
		t.Errorf("a store that does not answer: %v, %d generated", err, f.generated)
	}
	user.System = silent{System: system, changes: errBroken}
	if _, err := user.Converge(t.Context()); !errors.Is(err, errBroken) || f.generated != 1 {
		t.Errorf("a lost answer: %v, %d generated", err, f.generated)
	}
	if _, err := user.Converge(t.Context()); err != nil || f.generated != 1 || known.Writes() != 1 {
		t.Errorf("after it: %v, %d generated, %d writes", err, f.generated, known.Writes())
	}
}
