package credential_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// bothKinds runs a test with one password for each of two users, and with two passwords for one.
func bothKinds(t *testing.T, test func(t *testing.T, user credential.User, system *credentialtest.Users)) {
	t.Helper()
	for name, kind := range map[string]struct {
		alternate string
		room      int
	}{"two users": {"app_b", 1}, "two passwords": {"", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, api := apiserver.Start(t)
				store, system := credential.Secrets{Client: api, Namespace: "default"}, &credentialtest.Users{Room: kind.room}
				test(t, credential.User{
					Once:   credential.Once{Store: store, Name: "app-db", Owner: testOwner(), Username: "app_a", Alternate: kind.alternate},
					System: credentialtest.Session{Users: system},
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
func letsIn(t *testing.T, system *credentialtest.Users, when string, records map[credential.Record]bool) {
	t.Helper()
	for record, want := range records {
		if system.Accepts(record) != want {
			t.Errorf("%s generation %d is let in: %t, want %t", when, record.Generation, !want, want)
		}
	}
}

// steady shows that another convergence gives the same and writes nothing.
func steady(t *testing.T, system *credentialtest.Users, user credential.User, want credential.Record) {
	t.Helper()
	writes := system.Writes()
	if again := converged(t, user); again.Record != want || again.Waits || system.Writes() != writes {
		t.Errorf("what is steady is not left alone: %+v", again)
	}
}

// A request is answered once, the credential before it is accepted as long as the overlap lasts, and
// then it is not; a second request waits for that. All of it is remembered by the store alone.
func TestARotationOverlaps(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user).Record
		steady(t, system, user, first)
		user.Request = "one"
		outcome := converged(t, user)
		second := outcome.Record
		if second.Generation != 2 || second.Request != "one" || time.Until(outcome.Until) < credential.DefaultOverlap-time.Minute {
			t.Errorf("after the request: %+v", outcome)
		}
		letsIn(t, system, "in the overlap", map[credential.Record]bool{first: true, second: true})
		steady(t, system, user, second)
		user.Request = "two"
		if early := converged(t, user); early.Record != second || !early.Waits {
			t.Errorf("the next request is answered within the overlap: %+v", early)
		}
		afterTheOverlap()
		third := converged(t, user).Record
		if third.Generation != 3 || third.Request != "two" {
			t.Errorf("the request that has waited: %+v", third)
		}
		letsIn(t, system, "after the overlap", map[credential.Record]bool{first: false, second: true, third: true})
		afterTheOverlap()
		converged(t, user)
		letsIn(t, system, "in the end", map[credential.Record]bool{first: false, second: false, third: true})
		steady(t, system, user, third)
		if err := user.Store.Delete(t.Context(), user.Name, user.Owner); err != nil {
			t.Error(err)
		}
		if found, err := user.Store.Read(t.Context(), user.Name, user.Owner, 1); err != nil || len(found.Records)+found.Published > 0 {
			t.Errorf("after the deletion there is %+v, %v", found, err)
		}
	})
}

// Also where the latest password is not the stored one any more, and is left so, a request waits until the
// overlap of the one before is over.
func TestARotationOutOfADriftEndsNoOverlap(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user).Record
		user.Request = "one"
		second := converged(t, user).Record
		left := first.Password
		if user.Alternate != "" {
			left = credential.NewPassword("changed-by-hand")
		}
		system.Plant(second.Username, user.Owner, left)
		user.Request, user.Policy.LeaveDrift = "two", true
		early, err := user.Converge(t.Context())
		if !errors.Is(err, credential.ErrDrifted) || !early.Waits || early.Record != second {
			t.Errorf("in the overlap: %+v, %v", early, err)
		}
		letsIn(t, system, "in the overlap", map[credential.Record]bool{first: true, second: false})
		afterTheOverlap()
		third := converged(t, user).Record
		if third.Generation != 3 || third.Request != "two" {
			t.Errorf("the request that has waited: %+v", third)
		}
		letsIn(t, system, "after it", map[credential.Record]bool{second: false, third: true})
	})
}

// A cache that starts again without its users gets back both passwords of an overlap.
func TestAUserThatIsLostInAnOverlapComesBackWithBothPasswords(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user).Record
		user.Request = "one"
		second := converged(t, user).Record
		system.Lose(second.Username)
		converged(t, user)
		letsIn(t, system, "after the loss", map[credential.Record]bool{first: true, second: true})
		afterTheOverlap()
		converged(t, user)
		letsIn(t, system, "in the end", map[credential.Record]bool{first: false, second: true})
	})
}

// The old password is refused at once, and the user stays.
func TestARotationInPlaceEndsTheOldPassword(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user)
		user.Request, user.InPlace = "one", true
		second := converged(t, user)
		if second.Username != first.Username || !second.Until.IsZero() || system.Accepts(first.Record) || !system.Accepts(second.Record) {
			t.Errorf("%+v, the first is let in: %t", second, system.Accepts(first.Record))
		}
	})
}

// Where the system has room for two credentials, who has the lost one goes on.
func TestALostCredentialIsReplacedWithoutAnOutage(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
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
		if !system.Accepts(first.Record) || !system.Accepts(second.Record) || second.Until.IsZero() {
			t.Errorf("who has the lost one is locked out: %+v", second)
		}
		afterTheOverlap()
		if converged(t, user); system.Accepts(first.Record) || !system.Accepts(second.Record) {
			t.Error("the lost one is accepted for ever")
		}
	})
}

// A login is not tried at each look.
func TestAPasswordThatWasProvenIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, _ *credentialtest.Users) {
		converged(t, user)
		user.Generation, user.Proven = 1, true
		if outcome := converged(t, user); outcome.Verified {
			t.Error("a password that was proven is tried again")
		}
	})
}

// Every password is let in from when readers get it until its overlap has ended, whatever goes wrong during rotations; the request is
// answered once, and in the end the last one is let in alone.
func TestWhateverGoesWrongARotationLocksNoClientOut(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		system := begun(w, declareRotation)
		w.Create(appOf("one"))
		w.Advance(10 * time.Minute)
		first := published(w)
		for i, request := range []string{"x", "y"} {
			w.Patch(appOf("one"), `{"spec":{"plan":"`+request+`"}}`)
			w.Advance(10 * time.Minute)
			second := published(w)
			if second.Generation != i+2 || !system.Accepts(first) || !system.Accepts(second) {
				w.Errorf("in the overlap of %s generation %d is published, and the first is let in: %t, the second: %t",
					request, second.Generation, system.Accepts(first), system.Accepts(second))
			}
			w.Advance(2 * time.Hour)
			if now := published(w); now != second || system.Accepts(first) || !system.Accepts(second) {
				w.Errorf("after the overlap of %s the first is let in: %t, the second: %t", request, system.Accepts(first), system.Accepts(second))
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
			return einmal.RequeueAfter(time.Until(outcome.Until) + time.Second)
		}
		return err
	})
}
