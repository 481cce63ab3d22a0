package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// Tenant A can reach nothing of tenant B. Beside other keys and channels, that is
// what tells their names, and what changes scripts and functions that all share.
func TestAUserReachesItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.users.Access.Scripting = true
	must(t, f.users.Create(t.Context(), owner(), user()))
	reader := f.users
	reader.Access.Profile = redis.ReadOnly
	record := credential.Record{Username: "t_acme_report", Password: credential.NewPassword("report")}
	must(t, reader.Create(t.Context(), credential.Owner{Operator: "o", Name: "acme/report"}, record))
	for _, server := range f.servers {
		f.as(t, server, "SET", "acme:k", "v")
		f.as(t, server, "SET", "beta:k", "v")
		write := func() *goredis.Client { return server.Client(user().Username, "first") }
		read := func() *goredis.Client { return server.Client(record.Username, "report") }
		for _, line := range []string{
			"GET acme:k", "MGET acme:k acme:l", "EXISTS acme:k", "TTL acme:k", "PING", "SUBSCRIBE acme:c", "HGETALL acme:h", "ZRANGE acme:z 0 -1",
			"MEMORY USAGE acme:k", "CLIENT ID", "COMMAND COUNT", "SELECT 0", "UNSUBSCRIBE",
		} {
			f.may(t, write, line)
			f.may(t, read, line)
		}
		for _, line := range []string{
			"SET acme:l v", "DEL acme:l", "PUBLISH acme:c hello", "XADD acme:x * f v", "EXPIRE acme:k 100", "EVAL return(redis.call('get',KEYS[1])) 1 acme:k",
			"SCRIPT LOAD return(1)", "BLPOP acme:empty 0.001",
		} {
			f.may(t, write, line)
			f.mayNot(t, read, line)
		}
		for _, line := range []string{
			"GET beta:k", "SET beta:k v", "DEL beta:k", "MGET acme:k beta:k", "RENAME acme:k beta:x", "COPY beta:k acme:copy", "SUBSCRIBE beta:c", "PSUBSCRIBE *",
			"PUBLISH beta:c hello", "EVAL return(redis.call('get',KEYS[1])) 1 beta:k", "EVAL return(redis.call('get','beta:k')) 0",
			"EVAL return(redis.call('keys','*')) 0", "EVAL return(redis.call('flushall')) 0", "SORT acme:list BY beta:*", "SUBSCRIBE __keyspace@0__:beta:k",
			"KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "CLIENT LIST", "CLIENT KILL USER " + user().Username,
			"CLIENT TRACKING ON BCAST", "PUBSUB CHANNELS", "PUBSUB NUMSUB beta:c", "PUBSUB SHARDNUMSUB beta:c", "PUBSUB NUMPAT", "MEMORY STATS",
			"MEMORY DOCTOR", "MEMORY MALLOC-STATS", "MEMORY PURGE", "MEMORY USAGE beta:k", "LASTSAVE", "ROLE",
			"EVAL return(redis.call('pubsub','numsub','beta:c')) 0", "CLUSTER GETKEYSINSLOT 0 1", "FUNCTION LIST", "FUNCTION FLUSH", "SCRIPT FLUSH", "MONITOR",
			"SLOWLOG GET", "CONFIG GET *", "ACL LIST", "ACL SETUSER default on nopass", "INFO", "DEBUG SLEEP 0", "SAVE", "SHUTDOWN NOSAVE", "REPLICAOF NO ONE",
			"MODULE LIST", "MIGRATE 127.0.0.1 1 acme:k 0 1", "FUNCTION LOAD x", "LATENCY LATEST",
		} {
			f.mayNot(t, write, line)
			f.mayNot(t, read, line)
		}
		mayInACluster(t, server, user().Username)
		mayInACluster(t, server, record.Username)
	}
}

// mayInACluster asks a server, which is none, what a user might do if it were: what clients need, and nothing that tells of others' keys. What
// unknown to the server cannot be run.
func mayInACluster(t *testing.T, server *servers.Redis, username string) {
	t.Helper()
	admin := server.Admin()
	defer func() { _ = admin.Close() }()
	for line, want := range map[string]bool{
		"CLUSTER SLOTS": true, "CLUSTER SHARDS": true, "CLUSTER NODES": true, "CLUSTER KEYSLOT k": true,
		"CLUSTER COUNTKEYSINSLOT 0": false, "CLUSTER SLOT-STATS SLOTSRANGE 0 1": false, "CLUSTER FORGET node": false,
	} {
		answer, err := admin.Do(t.Context(), append([]any{"ACL", "DRYRUN", username}, fields(line)...)...).Result()
		if allowed := err == nil && answer == "OK"; allowed != want {
			t.Errorf("%s: %s: %v, %v; want it allowed: %t", username, line, answer, err, want)
		}
	}
}

// may shows that a user may do something. Valkey 8.0 answers NOSUB to who has subscribed to nothing, once it may.
func (f *fixture) may(t *testing.T, login func() *goredis.Client, line string) {
	t.Helper()
	if err := f.tries(t, login, line); err != nil && !errors.Is(err, goredis.Nil) && !goredis.HasErrorPrefix(err, "NOSUB") {
		t.Errorf("%s: %v", line, err)
	}
}

// mayNot shows that a user is denied something. What scripts are denied is said in other words by later servers than by Redis 7.0.
func (f *fixture) mayNot(t *testing.T, login func() *goredis.Client, line string) {
	t.Helper()
	err := f.tries(t, login, line)
	denied := slices.ContainsFunc([]string{"NOPERM", "The user executing the script can't", "ACL failure in script", "DEBUG command not allowed"}, func(word string) bool {
		return err != nil && strings.Contains(err.Error(), word)
	})
	if !denied {
		t.Errorf("%s is not denied: %v", line, err)
	}
}

// tries logs in again each time, as some commands change what a connection understands.
func (*fixture) tries(t *testing.T, login func() *goredis.Client, line string) error {
	t.Helper()
	client := login()
	defer func() { _ = client.Close() }()
	return client.Do(t.Context(), fields(line)...).Err()
}

// A plan changes rights by level and never touches credentials; manual changes are corrected; and
// where nothing differs nothing is written, also after a restart of the server, which describes rules in another order then.
func TestAccessIsConvergedAndPasswordsStay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	converge := func(want bool) func() {
		return func() {
			t.Helper()
			changed, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
			if err != nil || changed != want {
				t.Errorf("changed: %t, %v, want %t", changed, err, want)
			}
		}
	}
	_, err := f.nodes.WithoutFile(t.Context())
	must(t, err)
	f.quiet(t, "what is nowhere", converge(false))
	must(t, f.users.Create(t.Context(), owner(), user()))
	must(t, f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second"), Keep: true}))
	f.quiet(t, "what was just created", converge(false))
	for _, drift := range []string{
		"~beta:*", "&beta:*", "+@dangerous", "+scan", "+client|tracking", "-get", "-@all", "(~beta:* +@all)", "resetchannels", "&*", "resetkeys " + names.CacheMark(owner().String()),
	} {
		for i, server := range f.servers {
			f.plant(t, server, drift)
			if i == 0 {
				converge(true)()
			}
		}
		converge(true)()
		f.quiet(t, "what was put right after "+drift, converge(false))
	}
	f.as(t, f.servers[1], "ACL", "DELUSER", user().Username)
	converge(true)()
	f.lets(t, "where one node had forgotten it", map[string]string{"first": "yes yes", "second": "yes yes"})
	f.quiet(t, "what one node had forgotten", converge(false))
	f.users.Access = redis.Access{Profile: redis.ReadOnly, Prefix: "acme:web:"}
	converge(true)()
	f.quiet(t, "another plan, once more,", converge(false))
	must(t, f.servers[0].Stop())
	f.start(t, f.servers[0])
	if state := f.observe(t, user()); state != credential.Accepted {
		t.Errorf("after a restart it is %s", state)
	}
	f.quiet(t, "a restart", converge(false))
	f.lets(t, "in the end", map[string]string{"first": "yes yes", "second": "yes yes"})
	f.plant(t, f.servers[0], "resetkeys ~x "+names.CacheMark("x"))
	f.quiet(t, "another's user", func() {
		if _, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username); !credential.Blocked(err) {
			t.Errorf("another's user is changed: %v", err)
		}
	})
}

// An access that would be for all keys, or for others than it seems, is refused.
func TestAnAccessHasAPlainPrefix(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, access := range []redis.Access{
		{Profile: redis.ReadWrite},
		{Prefix: "acme:"},
		{Profile: "admin", Prefix: "acme:"},
		{Profile: redis.ReadOnly, Prefix: "*"},
		{Profile: redis.ReadOnly, Prefix: "a ~*"},
		{Profile: redis.ReadOnly, Prefix: "a?"},
		{Profile: redis.ReadOnly, Prefix: "a[b]"},
		{Profile: redis.ReadOnly, Prefix: "a\n"},
		{Profile: redis.ReadOnly, Prefix: "ü"},
	} {
		users := f.users
		users.Access = access
		_, err := users.ConvergeAccess(t.Context(), owner(), user().Username)
		for _, err := range []error{
			err, users.Create(t.Context(), owner(), user()), users.Set(t.Context(), owner(), credential.Assignment{Record: user()}),
		} {
			if err == nil || !slices.ContainsFunc([]string{"must be", "must not"}, func(remedy string) bool { return strings.Contains(err.Error(), remedy) }) {
				t.Errorf("%+v: %v", access, err)
			}
		}
	}
}
