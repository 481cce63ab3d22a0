package credential_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// backup returns copies of the named Secrets, as a backup of the store has them.
func backup(t *testing.T, user credential.User, names ...string) []*corev1.Secret {
	t.Helper()
	store := secretsOf(t, user)
	var saved []*corev1.Secret
	for _, name := range names {
		secret := &corev1.Secret{}
		if err := store.Client.Get(t.Context(), client.ObjectKey{Namespace: store.Namespace, Name: name}, secret); err != nil {
			t.Fatal(err)
		}
		secret.ResourceVersion, secret.UID = "", ""
		saved = append(saved, secret)
	}
	return saved
}

// restore replaces everything that the store has of a user by a backup.
func restore(t *testing.T, user credential.User, saved []*corev1.Secret) {
	t.Helper()
	if err := user.Store.Delete(t.Context(), user.Name, user.Owner); err != nil {
		t.Fatal(err)
	}
	for _, secret := range saved {
		if err := secretsOf(t, user).Client.Create(t.Context(), secret.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
}

func secretsOf(t *testing.T, user credential.User) credential.Secrets {
	t.Helper()
	store, ok := user.Store.(credential.Secrets)
	if !ok {
		t.Fatalf("the store is a %T", user.Store)
	}
	return store
}

// A store that was restored from a backup can be older than the system. Nothing but the store and the system is left to show it: neither a
// status nor a known generation. Converge writes nothing then, so that the holders of the newer credential can still log in.
func TestAStoreThatIsOlderThanTheSystemChangesNothing(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	for name, moment := range map[string]func(){"within the overlap": func() {}, "after the overlap": afterTheOverlap} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
				first := converged(t, user).Record
				saved := backup(t, user, "app-db", "app-db.g1")
				<-time.After(time.Hour)
				user.Request = "one"
				second := converged(t, user).Record
				newer := backup(t, user, "app-db", "app-db.g1", "app-db.g2")
				moment()
				converged(t, user)
				letIn, writes := system.Accepts(first), system.Writes()
				restore(t, user, saved)
				afterTheOverlap()
				user.Request = ""
				for range 2 {
					if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrBehind) || !errors.Is(err, credential.ErrMissing) {
						t.Errorf("Converge returned %v, want %v", err, credential.ErrBehind)
					}
				}
				letsIn(t, system, "with the older store", map[credential.Record]bool{first: letIn, second: true})
				if now := system.Writes(); now != writes {
					t.Errorf("%d writes to the system", now-writes)
				}
				restore(t, user, newer)
				if again := converged(t, user); again.Record != second {
					t.Errorf("with the restored records: %+v", again)
				}
			})
		})
	}
}

// A system that was restored from a backup is older than the store, which has the credential that the system accepts. Converge gives the
// system the latest credential.
func TestASystemThatIsOlderThanTheStoreGetsTheLatestCredential(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		old := &credentialtest.Users{Room: system.Room}
		user.System = credentialtest.Session{Users: old}
		converged(t, user)
		user.Request = "one"
		converged(t, user)
		afterTheOverlap()
		second := converged(t, user).Record
		user.System, user.Request = credentialtest.Session{Users: system}, "two"
		system.Plant(second.Username, user.Owner, second.Password)
		third := converged(t, user).Record
		user.System = credentialtest.Session{Users: old}
		if again := converged(t, user); again.Record != third || !old.Accepts(third) {
			t.Errorf("the older system: %+v", again)
		}
	})
}

// Alternating logins come back to a login that was retired two rotations before. That is no sign of an older store.
func TestManyRotationsInARowAreNotAnOlderStore(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		for i, request := range []string{"", "one", "two", "three", "four"} {
			user.Request = request
			if latest := converged(t, user); latest.Generation != i+1 || !system.Accepts(latest.Record) {
				t.Errorf("request %q: %+v", request, latest)
			}
			afterTheOverlap()
			steady(t, system, user, converged(t, user).Record)
		}
	})
}

// With ReplaceMissing, an older store gets another credential, and the newer one that the store lacks is accepted until the overlap ends. The
// order of records does not depend on clocks: that of the next record can be behind.
func TestAnOlderStoreIsReplacedOnRequest(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		converged(t, user)
		saved := backup(t, user, "app-db", "app-db.g1")
		user.Request = "one"
		second := converged(t, user).Record
		afterTheOverlap()
		converged(t, user)
		restore(t, user, saved)
		user.Request, user.Policy.ReplaceMissing = "", true
		replaced := converged(t, user).Record
		if replaced.Generation != 2 || replaced.Password == second.Password || !replaced.Created.After(second.Created) {
			t.Errorf("it is replaced by %+v", replaced)
		}
		letsIn(t, system, "in the overlap", map[credential.Record]bool{second: true, replaced: true})
		user.Policy.ReplaceMissing = false
		steady(t, system, user, replaced)
		afterTheOverlap()
		converged(t, user)
		letsIn(t, system, "in the end", map[credential.Record]bool{second: false, replaced: true})
		steady(t, system, user, replaced)
	})
}

// A copy for readers that names a later generation than the store has shows that the store has lost that one.
func TestACopyOfALaterGenerationShowsAnOlderStore(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		converged(t, user)
		user.Request = "one"
		second := converged(t, user).Record
		afterTheOverlap()
		converged(t, user)
		lose(t, user, "app-db.g2")
		writes := system.Writes()
		if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrBehind) || system.Writes() != writes {
			t.Errorf("Converge returned %v, want %v; %d writes", err, credential.ErrBehind, system.Writes()-writes)
		}
		if _, err := user.Ensure(t.Context()); !errors.Is(err, credential.ErrBehind) {
			t.Errorf("Ensure returned %v, want %v", err, credential.ErrBehind)
		}
		user.Policy.ReplaceMissing = true
		third := converged(t, user).Record
		if third.Generation != 3 {
			t.Errorf("it is replaced by %+v", third)
		}
		letsIn(t, system, "in the overlap", map[credential.Record]bool{second: true, third: true})
		user.Policy.ReplaceMissing = false
		steady(t, system, user, third)
	})
}
