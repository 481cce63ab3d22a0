package credential_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// editCopy writes another password into the copy for readers.
func editCopy(t *testing.T, user credential.User, password string) {
	t.Helper()
	store, secret := secretsOf(t, user), &corev1.Secret{}
	if err := store.Client.Get(t.Context(), client.ObjectKey{Namespace: store.Namespace, Name: user.Name}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data[credential.PasswordKey] = []byte(password)
	if err := store.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// A person rotates by hand: they set a password in the system and write it into the copy for readers. With LeaveDrift Converge leaves both, also
// if the person has deleted the copy. What shows that the system once had the stored credential is the generation in the copy, or the one that
// is known from a status.
func TestADriftThatReachesTheCopyIsLeft(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	for name, row := range map[string]struct {
		known int
		// plants puts a user in place of the one that is there, which keeps nothing of what it was given.
		plants bool
		edit   func(t *testing.T, user credential.User)
	}{
		"the copy has the same password":               {0, true, func(t *testing.T, user credential.User) { t.Helper(); editCopy(t, user, "by-hand") }},
		"the copy is deleted, and a status knows it":   {1, true, func(t *testing.T, user credential.User) { t.Helper(); lose(t, user, "app-db") }},
		"the copy is deleted, and the system knows it": {0, false, func(t *testing.T, user credential.User) { t.Helper(); lose(t, user, "app-db") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
				byHand := converged(t, user).Record
				byHand.Password = credential.NewPassword("by-hand")
				system.ChangePassword(byHand.Username, byHand.Password)
				if row.plants {
					system.Plant(byHand.Username, user.Owner, byHand.Password)
				}
				row.edit(t, user)
				user.Policy.LeaveDrift, user.Generation = true, row.known
				writes := system.Writes()
				for range 2 {
					if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrDrifted) {
						t.Errorf("Converge returned %v, want %v", err, credential.ErrDrifted)
					}
				}
				if !system.Accepts(byHand) || system.Writes() != writes {
					t.Errorf("the password of the person is not accepted any more; %d writes to the system", system.Writes()-writes)
				}
				user.Policy.LeaveDrift = false
				if enforced := converged(t, user); !system.Accepts(enforced.Record) {
					t.Error("without LeaveDrift the stored password is not set")
				}
				if converged(t, user).Restored {
					t.Error("an unchanged password counts as restored")
				}
				system.ChangePassword(byHand.Username, byHand.Password)
				if !converged(t, user).Restored {
					t.Error("a changed password that was set again does not count as restored")
				}
			})
		})
	}
}

// A person takes the right to log in from a user. With LeaveDrift it stays so, until the person or a rotation gives it back. Else the next look
// gives it back.
func TestADisabledUserStaysDisabledWithLeaveDrift(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user).Record
		system.Disable(first.Username)
		user.Policy.LeaveDrift = true
		for range 2 {
			if _, err := user.Converge(t.Context()); !errors.Is(err, credential.ErrDrifted) || system.Accepts(first) {
				t.Errorf("Converge returned %v, want %v; the user is let in: %t", err, credential.ErrDrifted, system.Accepts(first))
			}
		}
		user.Policy.LeaveDrift = false
		if converged(t, user); !system.Accepts(first) {
			t.Error("without LeaveDrift the user is not let in again")
		}
	})
}
