package elasticache_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// A tenant reaches its own keys and channels only, and a profile that changes is applied by level, without touching
// the password.
func TestAUserReachesItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "reach", settle(20*time.Millisecond, 0))
	got := w.provisioned(w.user(""))
	client := node.Client(w.username(), got.Password.Reveal())
	defer func() { _ = client.Close() }()
	may := func(line string, want bool) {
		t.Helper()
		var command []any
		for word := range strings.FieldsSeq(line) {
			command = append(command, word)
		}
		err := client.Do(t.Context(), command...).Err()
		if denied := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); denied == want {
			t.Errorf("%s: %v, to be allowed: %t", line, err, want)
		}
	}
	for _, line := range []string{"SET reach:k v", "GET reach:k", "PUBLISH reach:c hello", "PING"} {
		may(line, true)
	}
	for _, line := range []string{"GET other:k", "SET other:k v", "PUBLISH other:c hello", "KEYS *", "FLUSHALL", "SCAN 0", "ACL LIST", "CONFIG GET *"} {
		may(line, false)
	}
	w.users.Access.Profile = redis.ReadOnly
	again := w.provisioned(w.user(""))
	may("GET reach:k", true)
	may("SET reach:k v", false)
	if again.Record != got.Record {
		t.Error("another access is another credential")
	}
}

// AWS rewrites access strings, which causes no further request. Manual changes are corrected.
func TestTheAccessIsComparedWithWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "compared")
	w.provisioned(w.user(""))
	asked := aws.ToString(w.seen(w.username()).AccessString)
	if !strings.Contains(asked, "resetchannels") {
		t.Fatalf("AWS has not changed the words: %s", asked)
	}
	for _, change := range []struct{ from, to string }{ // One comes twice.
		{"~compared:* ", "~compared:* ~other:* "}, {"&compared:*", "&*"}, {"on ", "off "}, {"~compared:* ", ""}, {"on ", "off "},
	} {
		access := strings.Replace(asked, change.from, change.to, 1)
		_, err := w.client.ModifyUser(t.Context(), &sdk.ModifyUserInput{UserId: aws.String(w.username()), AccessString: &access})
		w.none(err)
		w.lab.Forget()
		w.settles(func() error { _, err := w.users.ConvergeAccess(t.Context(), w.owner(), w.username()); return err })
		if got := aws.ToString(w.seen(w.username()).AccessString); got != asked || w.lab.Count("ModifyUser") != 1 {
			t.Errorf("after %q the access is %q, with %v", change.to, got, w.lab.Journal())
		}
	}
}

// If AWS never reports the access that was set, that is an error, and the request is not repeated forever.
func TestAnAccessThatIsNeverShownIsGivenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hidden")
	w.provisioned(w.user(""))
	before := w.seen(w.username()).AccessString
	w.users.Access.Profile = redis.ReadOnly
	if _, err := w.users.ConvergeAccess(t.Context(), w.owner(), w.username()); !errors.Is(err, elasticache.ErrSettling) {
		t.Fatal(err)
	}
	// As if AWS had not done it.
	_, err := w.client.ModifyUser(t.Context(), &sdk.ModifyUserInput{UserId: aws.String(w.username()), AccessString: before})
	w.none(err)
	w.lab.Forget()
	if _, err := w.users.ConvergeAccess(t.Context(), w.owner(), w.username()); !errors.Is(err, credential.ErrUnproven) || w.lab.Writes() != 0 {
		t.Errorf("it says %v; %v", err, w.lab.Journal())
	}
}

func TestMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mistakes")
	for want, change := range map[string]func(*elasticache.Config){
		"client":      func(c *elasticache.Config) { c.Client = nil },
		"user groups": func(c *elasticache.Config) { c.Groups = nil },
		"empty":       func(c *elasticache.Config) { c.Groups = []string{""} },
		"duplicate":   func(c *elasticache.Config) { c.Groups = []string{"a", "A"} },
		"engine":      func(c *elasticache.Config) { c.Engine = "memcached" },
		"endpoint":    func(c *elasticache.Config) { c.Endpoint = "cache" },
	} {
		config := w.config
		change(&config)
		if _, err := elasticache.Open(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, access := range map[string]redis.Access{
		"profile": {Profile: "all", Prefix: "x:"}, "empty": {Profile: redis.ReadOnly}, "must not": {Profile: redis.ReadOnly, Prefix: "*"},
	} {
		users := elasticache.Users{Cache: w.users.Cache, Access: access}
		err := users.Create(t.Context(), w.owner(), credential.Record{Username: w.username(), Password: credential.NewPassword("x")})
		_, level := users.ConvergeAccess(t.Context(), w.owner(), w.username())
		if err == nil || level == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, err, level)
		}
	}
	if len(w.lab.Journal()) != 0 {
		t.Errorf("AWS was called: %v", w.lab.Journal())
	}
}
