package credential_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// gate is a system of users in memory in which credentials can be rotated: one password for each of two users, or two for one.
type gate struct {
	mu       sync.Mutex
	accounts map[string]*account
	// writes counts changes.
	writes int
}

type account struct {
	mark      string
	passwords []string
	retired   bool
}

func (g *gate) Observe(_ context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.accounts[username]
	switch {
	case known == nil:
		return credential.Absent, nil
	case known.mark != owner.String():
		return credential.Foreign, nil
	case known.retired:
		return credential.Retired, nil
	case password.IsZero():
		return credential.Present, nil
	case slices.Contains(known.passwords, password.Reveal()):
		return credential.Accepted, nil
	default:
		return credential.Refused, nil
	}
}

func (g *gate) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[record.Username] != nil {
		return errors.New("the user is there")
	}
	if g.accounts == nil {
		g.accounts = map[string]*account{}
	}
	g.writes++
	g.accounts[record.Username] = &account{mark: owner.String(), passwords: []string{record.Password.Reveal()}}
	return nil
}

func (g *gate) Set(_ context.Context, owner credential.Owner, change credential.Assignment) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	known := g.accounts[change.Username]
	if !change.Keep {
		known.passwords = nil
	}
	if known.passwords = append(known.passwords, change.Password.Reveal()); len(known.passwords) > 2 {
		return errors.New("a user has two passwords at most")
	}
	known.mark, known.retired = owner.String(), false
	return nil
}

func (g *gate) Superseded(_ context.Context, _ credential.Owner, current credential.Record, others []string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	active := slices.ContainsFunc(others, func(name string) bool { return g.accounts[name] != nil && !g.accounts[name].retired })
	return active || len(g.accounts[current.Username].passwords) > 1, nil
}

func (g *gate) Retire(_ context.Context, _ credential.Owner, current credential.Record, others []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	for _, name := range others {
		if g.accounts[name] != nil {
			g.accounts[name].retired = true
		}
	}
	g.accounts[current.Username].passwords = []string{current.Password.Reveal()}
	return nil
}

// lets tells whether somebody who has a record can log in.
func (g *gate) lets(record credential.Record) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.accounts[record.Username]
	return known != nil && !known.retired && slices.Contains(known.passwords, record.Password.Reveal())
}

// bothKinds runs a test with one password for each of two users, and with two passwords for one.
func bothKinds(t *testing.T, test func(t *testing.T, user credential.User, system *gate)) {
	t.Helper()
	for name, alternate := range map[string]string{"two users": "app_b", "two passwords": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, api := apiserver.Start(t)
				store, system := credential.Secrets{Client: api, Namespace: "default"}, &gate{}
				test(t, credential.User{
					Once:   credential.Once{Store: store, Name: "app-db", Owner: testOwner(), Username: "app_a", Alternate: alternate},
					System: system,
				}, system)
			})
		})
	}
}

func converged(t *testing.T, user credential.User) credential.Outcome {
	t.Helper()
	outcome, err := user.Converge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// afterTheOverlap waits, in virtual time, until an overlap of the default length has ended.
func afterTheOverlap() { <-time.After(credential.DefaultOverlap + time.Hour) }

// letsIn shows who can log in.
func (g *gate) letsIn(t *testing.T, when string, records map[credential.Record]bool) {
	t.Helper()
	for record, want := range records {
		if g.lets(record) != want {
			t.Errorf("%s generation %d is let in: %t, want %t", when, record.Generation, !want, want)
		}
	}
}

// steady shows that another convergence gives the same and writes nothing.
func (g *gate) steady(t *testing.T, user credential.User, want credential.Record) {
	t.Helper()
	writes := g.writes
	if again := converged(t, user); again.Record != want || again.Waits || g.writes != writes {
		t.Errorf("what is steady is not left alone: %+v", again)
	}
}

// tenant-and-database.md §2, Rotation: a request is answered once, the credential before it is accepted as long as the overlap lasts, and
// then it is not; a second request waits for that. All of it is remembered by the store alone.
func TestARotationOverlaps(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *gate) {
		first := converged(t, user).Record
		system.steady(t, user, first)
		user.Request = "one"
		outcome := converged(t, user)
		second := outcome.Record
		if second.Generation != 2 || second.Request != "one" || time.Until(outcome.Until) < credential.DefaultOverlap-time.Minute {
			t.Errorf("after the request: %+v", outcome)
		}
		system.letsIn(t, "in the overlap", map[credential.Record]bool{first: true, second: true})
		system.steady(t, user, second)
		user.Request = "two"
		if early := converged(t, user); early.Record != second || !early.Waits {
			t.Errorf("the next request is answered within the overlap: %+v", early)
		}
		afterTheOverlap()
		third := converged(t, user).Record
		if third.Generation != 3 || third.Request != "two" {
			t.Errorf("the request that has waited: %+v", third)
		}
		system.letsIn(t, "after the overlap", map[credential.Record]bool{first: false, second: true, third: true})
		afterTheOverlap()
		converged(t, user)
		system.letsIn(t, "in the end", map[credential.Record]bool{first: false, second: false, third: true})
		system.steady(t, user, third)
		if err := user.Store.Delete(t.Context(), user.Name, user.Owner); err != nil {
			t.Error(err)
		}
		if found, err := user.Store.Read(t.Context(), user.Name, user.Owner, 1); err != nil || len(found.Records)+found.Published > 0 {
			t.Errorf("after the deletion there is %+v, %v", found, err)
		}
	})
}

// A cache that starts again without its users gets back both passwords of an overlap.
func TestAUserThatIsLostInAnOverlapComesBackWithBothPasswords(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *gate) {
		first := converged(t, user).Record
		user.Request = "one"
		second := converged(t, user).Record
		delete(system.accounts, second.Username)
		converged(t, user)
		system.letsIn(t, "after the loss", map[credential.Record]bool{first: true, second: true})
		afterTheOverlap()
		converged(t, user)
		system.letsIn(t, "in the end", map[credential.Record]bool{first: false, second: true})
	})
}

// tenant-and-database.md §2, Rotation, InPlace: the old password is refused at once, and the user stays.
func TestARotationInPlaceEndsTheOldPassword(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *gate) {
		first := converged(t, user)
		user.Request, user.InPlace = "one", true
		second := converged(t, user)
		if second.Username != first.Username || !second.Until.IsZero() || system.lets(first.Record) || !system.lets(second.Record) {
			t.Errorf("%+v, the first is let in: %t", second, system.lets(first.Record))
		}
	})
}

// tenant-and-database.md §2, ways out of CredentialsMissing: where the system has room for two credentials, who has the lost one goes on.
func TestALostCredentialIsReplacedWithoutAnOutage(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *gate) {
		first := converged(t, user)
		if err := user.Store.Delete(t.Context(), user.Name, user.Owner); err != nil {
			t.Fatal(err)
		}
		user.Generation = 1
		if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrMissing) {
			t.Fatalf("it is not missed: %v", err)
		}
		user.Policy.ReplaceMissing = true
		second := converged(t, user)
		if !system.lets(first.Record) || !system.lets(second.Record) || second.Until.IsZero() {
			t.Errorf("who has the lost one is locked out: %+v", second)
		}
		afterTheOverlap()
		if converged(t, user); system.lets(first.Record) || !system.lets(second.Record) {
			t.Error("the lost one is accepted for ever")
		}
	})
}

// tenant-and-database.md §2, Details: a login is not tried at each look.
func TestAPasswordThatWasProvenIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, _ *gate) {
		converged(t, user)
		user.Generation, user.Proven = 1, true
		if outcome := converged(t, user); outcome.Verified {
			t.Error("a password that was proven is tried again")
		}
	})
}

// Every password is let in from when readers get it until its overlap has ended, whatever goes wrong during rotations; the request is
// answered once, and in the end the last one is let in alone.
func TestWhateverGoesWrongARotationLocksNobodyOut(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		system := &gate{}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("apps.example.com", einmal.Access(&corev1.Secret{}, "get", "create", "update"))
			declareRotation(op, fallible{system, p})
			return op
		})
		w.Create(appOf("one"))
		w.Advance(10 * time.Minute)
		first := published(w)
		for i, request := range []string{"x", "y"} {
			w.Patch(appOf("one"), `{"spec":{"plan":"`+request+`"}}`)
			w.Advance(10 * time.Minute)
			second := published(w)
			if second.Generation != i+2 || !system.lets(first) || !system.lets(second) {
				w.Errorf("in the overlap of %s generation %d is published, and the first is let in: %t, the second: %t",
					request, second.Generation, system.lets(first), system.lets(second))
			}
			w.Advance(2 * time.Hour)
			if now := published(w); now != second || system.lets(first) || !system.lets(second) {
				w.Errorf("after the overlap of %s the first is let in: %t, the second: %t", request, system.lets(first), system.lets(second))
			}
			first = second
		}
		w.Stop()
	}, einmaltest.Schedules(150))
}

// published is what readers get.
func published(w *einmaltest.World) credential.Record {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "default", "one-db"
	if !w.Get(secret) {
		w.Errorf("readers get nothing")
	}
	record := credential.Record{Username: string(secret.Data["username"]), Password: credential.NewPassword(string(secret.Data["password"]))}
	_, _ = fmt.Sscan(string(secret.Data["generation"]), &record.Generation)
	return record
}

// declareRotation declares an operator whose apps have a user of which a rotation is asked for by the plan.
func declareRotation(op *einmal.Operator, system credential.System) {
	apps := einmal.For[app](op, einmal.GVK("example.com", "v1", "App"))
	apps.Reconcile("user", func(ctx context.Context, c *einmal.Change[app]) error {
		user := credential.User{Once: userOf(c), System: system, Overlap: time.Hour}
		user.Alternate, user.Request = user.Username+"_b", strings.TrimPrefix(c.Object.Spec.Plan, "small")
		outcome, err := user.Converge(ctx)
		if err == nil && !outcome.Until.IsZero() {
			return einmal.RetryAfter(time.Until(outcome.Until)+time.Second, nil)
		}
		return err
	})
}

// fallible is a gate as a process of a simulated world sees it, where each call can go wrong.
type fallible struct {
	*gate

	process *einmaltest.Process
}

func (f fallible) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	return f.process.Effect(fmt.Sprint("create ", record.Username, record.Generation), func() (any, error) {
		return record.Generation, f.gate.Create(ctx, owner, record)
	})
}

func (f fallible) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	return f.process.Effect(fmt.Sprint("set ", change.Username, change.Generation), func() (any, error) {
		return change.Generation, f.gate.Set(ctx, owner, change)
	})
}

func (f fallible) Retire(ctx context.Context, owner credential.Owner, current credential.Record, others []string) error {
	return f.process.Effect(fmt.Sprint("retire what was before ", current.Generation), func() (any, error) {
		return current.Generation, f.gate.Retire(ctx, owner, current, others)
	})
}
