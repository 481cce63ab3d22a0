package credential_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// A request that comes while an earlier rotation overlaps waits, whatever overlap it asks for itself: the earlier overlap was promised.
func TestARequestDoesNotShortenTheOverlapBeforeIt(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*credential.User){
		"in place":             func(user *credential.User) { user.InPlace = true },
		"with less overlap":    func(user *credential.User) { user.Overlap = time.Minute },
		"with nothing asked":   func(user *credential.User) { user.Request, user.Overlap = "", time.Minute },
		"with an older status": func(user *credential.User) { user.InPlace, user.Generation = true, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
				user.Overlap = 10 * time.Hour
				first := converged(t, user).Record
				user.Request = "one"
				second := converged(t, user).Record
				<-time.After(time.Hour)
				user.Request = "two"
				ask(&user)
				early := converged(t, user)
				if early.Record != second || early.Waits != (user.Request != "") || time.Until(early.Until) < 8*time.Hour {
					t.Errorf("within the overlap: %+v", early)
				}
				letsIn(t, system, "within the overlap", map[credential.Record]bool{first: true, second: true})
				system.Lose(second.Username)
				converged(t, user)
				letsIn(t, system, "after the system has lost the user", map[credential.Record]bool{first: true, second: true})
				<-time.After(10 * time.Hour)
				if late := converged(t, user); (late.Generation == 3) != (user.Request != "") || system.Accepts(first) {
					t.Errorf("after the overlap: %+v", late)
				}
			})
		})
	}
}

// The overlap of the rotation that lasts can be changed without another request. That is the way to end it early.
func TestTheOverlapOfTheRotationThatLastsCanBeChanged(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		user.Overlap = 10 * time.Hour
		first := converged(t, user).Record
		user.Request = "one"
		second := converged(t, user).Record
		<-time.After(time.Hour)
		user.Overlap = time.Minute
		converged(t, user)
		letsIn(t, system, "with another overlap", map[credential.Record]bool{first: false, second: true})
	})
}
