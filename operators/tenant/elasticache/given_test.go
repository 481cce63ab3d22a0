package elasticache_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/credential"
)

// A store that was restored from a backup has an older credential than the cache. AWS gets no write, and who has the newer credential can log in.
func TestAStoreThatIsOlderThanTheCacheChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "older")
	first := w.provisioned(w.user("")).Record
	user := w.user("one")
	user.Overlap = time.Nanosecond
	second := w.provisioned(user).Record
	w.provisioned(user)
	w.none(w.store.Delete(t.Context(), user.Name, user.Owner), w.store.Create(t.Context(), user.Name, user.Owner, first),
		w.store.Publish(t.Context(), user.Name, user.Owner, first))
	user.Request = ""
	w.lab.Forget()
	for range 2 {
		if _, err := w.provision(user); !errors.Is(err, credential.ErrBehind) || w.lab.Writes() != 0 {
			t.Errorf("it says %v, want %v; %v", err, credential.ErrBehind, w.lab.Journal())
		}
	}
	if err := w.login(w.username(), second.Password); err != nil {
		t.Error(err)
	}
}

// Users of earlier releases have no generation in their access string. They get it by one change, which touches no password.
func TestUsersOfEarlierReleasesAreTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "earlier")
	first := w.provisioned(w.user("")).Record
	var words []string
	for word := range strings.FieldsSeq(aws.ToString(w.seen(w.username()).AccessString)) {
		if !strings.HasPrefix(word, "~einmal.given:") {
			words = append(words, word)
		}
	}
	_, err := w.client.ModifyUser(t.Context(), &sdk.ModifyUserInput{UserId: aws.String(w.username()), AccessString: aws.String(strings.Join(words, " "))})
	w.none(err)
	w.lab.Forget()
	for range 3 {
		if again := w.provisioned(w.user("")); again.Record != first {
			t.Errorf("it has generation %d", again.Generation)
		}
	}
	if access := aws.ToString(w.seen(w.username()).AccessString); w.lab.Writes() != 1 || !strings.Contains(access, "~einmal.given:") {
		t.Errorf("the access is %q, after %v", access, w.lab.Journal())
	}
	if err := w.login(w.username(), first.Password); err != nil {
		t.Error(err)
	}
}
