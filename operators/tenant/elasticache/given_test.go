package elasticache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

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

// An access string outlives every process that writes it. A change must be intended: the operator would not know its users, or change all of them.
func TestTheFormOfAccessStringsStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "forms")
	w.none(w.users.Create(t.Context(), w.owner(), credential.Record{
		Username: w.username(), Password: credential.NewPassword("password-of-a-test"), Generation: 2, Created: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC),
	}))
	const want = "on ~forms:* ~einmal.owner:q5uwjhyi62ysrlf4nw5i ~einmal.access:qsb34xwwvqebfvrugidh ~einmal.given:q5uwjhyi62ysrlf4nw5i:2:1793606400 " +
		"resetchannels &forms:* +@all -@scripting -@admin -@dangerous -scan -randomkey -dbsize -client|tracking -pubsub -memory " +
		"+memory|usage -function -script|flush -script|kill -cluster +cluster|info +cluster|keyslot +cluster|myid +cluster|nodes +cluster|shards " +
		"+cluster|slots"
	if got := aws.ToString(w.seen(w.username()).AccessString); got != want {
		t.Errorf("the access is %q, want %q", got, want)
	}
}
