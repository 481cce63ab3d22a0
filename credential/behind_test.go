package credential_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// If a generation is known and the store has none, nothing is generated.
func TestAKnownCredentialIsNotGeneratedAgain(t *testing.T) {
	t.Parallel()
	for _, known := range []int{1, 2, 7} {
		f := newFixture(t)
		once := f.once()
		once.Generation = known
		if got, err := once.Ensure(t.Context()); !errors.Is(err, credential.ErrMissing) || f.generated > 0 {
			t.Errorf("generation %d is known: %+v, %v, %d generated", known, got, err, f.generated)
		}
	}
}

// Where the store has lost the latest generation and has one before it, nothing is
// written, and what a person asks for is done.
func TestALostGenerationIsReplacedOnRequest(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		user.Request = "first"
		if _, err := user.Converge(t.Context()); err != nil {
			t.Fatal(err)
		}
		user.Request, user.InPlace = "second", user.Alternate == ""
		latest, err := user.Converge(t.Context())
		if err != nil || latest.Generation != 2 {
			t.Fatalf("%+v, %v", latest, err)
		}
		lose(t, user, "app-db", "app-db.g2")
		user.Generation = 2
		before := system.Writes()
		_, err = user.Converge(t.Context())
		if !errors.Is(err, credential.ErrMissing) || !credential.Blocked(err) || system.Writes() != before || !strings.Contains(err.Error(), "generation 2") {
			t.Errorf("without ReplaceMissing: %v, %d writes", err, system.Writes()-before)
		}
		user.Policy.ReplaceMissing, user.InPlace = true, false
		again, err := user.Converge(t.Context())
		if err != nil || again.Generation != 2 || again.Password == latest.Password || !system.Accepts(again.Record) {
			t.Errorf("asked for: %+v, %v", again, err)
		}
		if user.Alternate == "" && !system.Accepts(latest.Record) {
			t.Error("the lost one is refused, although there was room for two")
		}
	})
}

// What was generated after all was lost counts, also if the process died before that was known anywhere.
func TestWhatIsMadeAfterAllWasLostCounts(t *testing.T) {
	t.Parallel()
	for _, known := range []int{1, 2, 3, 9} {
		bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
			user.Generation = known
			first, err := user.Converge(t.Context())
			if err != nil || first.Generation != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			writes := system.Writes()
			again, err := user.Converge(t.Context()) // The process has died: the same is known as before.
			if err != nil || again.Record != first.Record || system.Writes() != writes {
				t.Errorf("known is %d: %+v, %v", known, again, err)
			}
		})
	}
}

// lose deletes Secrets of a user.
func lose(t *testing.T, user credential.User, names ...string) {
	t.Helper()
	store, is := user.Store.(credential.Secrets)
	if !is {
		t.Fatalf("the store is a %T", user.Store)
	}
	for _, name := range names {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: store.Namespace, Name: name}
		if err := errors.Join(store.Client.Get(t.Context(), key, secret), store.Client.Delete(t.Context(), secret)); err != nil {
			t.Fatal(err)
		}
	}
}
