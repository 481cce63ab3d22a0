package redis_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// rights are those of the administrator, as the package asks for them.
const rights = "+@connection +multi +exec +discard +acl|getuser +acl|setuser +acl|deluser +acl|users +acl|save +acl|cat +client|kill +script|kill"

// fixture is a Redis of two nodes, the second of which forgets its users when it stops, and an operator of it.
type fixture struct {
	servers []*servers.Redis
	nodes   *redis.Nodes
	users   redis.Users
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{servers: []*servers.Redis{{Dir: t.TempDir()}, {Dir: t.TempDir(), Volatile: true}}}
	for _, server := range f.servers {
		// The administrator is of the configuration, so that it is there whenever the server starts.
		t.Cleanup(func() { _ = server.Kill() })
		f.start(t, server)
	}
	f.nodes = f.open(t, credential.NewPassword("operator"))
	f.users = redis.Users{Nodes: f.nodes, Access: redis.Access{Profile: redis.ReadWrite, Prefix: "acme:"}}
	return f
}

// start starts a server, which has the operator's administrator then.
func (f *fixture) start(t *testing.T, server *servers.Redis) {
	t.Helper()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.as(t, server, append([]any{"ACL", "SETUSER", "operator", "on", ">operator"}, fields(rights)...)...)
}

func (f *fixture) open(t *testing.T, password credential.Password) *redis.Nodes {
	t.Helper()
	config := redis.Config{Username: "operator", Password: password, Timeout: 2 * time.Second}
	for _, server := range f.servers {
		config.Nodes = append(config.Nodes, server.Address())
	}
	nodes, err := redis.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Close() })
	return nodes
}

func fields(text string) []any {
	var found []any
	for field := range strings.FieldsSeq(text) {
		found = append(found, field)
	}
	return found
}

// as sends a command as the administrator of a server.
func (f *fixture) as(t *testing.T, server *servers.Redis, command ...any) any {
	t.Helper()
	admin := server.Admin()
	defer func() { _ = admin.Close() }()
	answer, err := admin.Do(t.Context(), command...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// plant makes a user of a server by rules; "" plants none.
func (f *fixture) plant(t *testing.T, server *servers.Redis, rules string) {
	t.Helper()
	if rules != "" {
		f.as(t, server, append([]any{"ACL", "SETUSER", user().Username}, fields(rules)...)...)
	}
}

// writes is how often users of a server were written.
func (f *fixture) writes(t *testing.T, server *servers.Redis) string {
	t.Helper()
	text, _ := f.as(t, server, "INFO", "commandstats").(string)
	found := regexp.MustCompile(`(?m)^cmdstat_acl\|(setuser|save|deluser):calls=\d+`).FindAllString(text, -1)
	slices.Sort(found)
	return strings.Join(found, " ")
}

// quiet shows that something writes to no server, or to none of these.
func (f *fixture) quiet(t *testing.T, what string, do func(), of ...*servers.Redis) {
	t.Helper()
	if len(of) == 0 {
		of = f.servers
	}
	var before []string
	for _, server := range of {
		before = append(before, f.writes(t, server))
	}
	do()
	for i, server := range of {
		if now := f.writes(t, server); now != before[i] {
			t.Errorf("%s writes to %s: %s, before: %s", what, server.Address(), now, before[i])
		}
	}
}

// logins tells on which servers a password lets the user in: "yes", "no", and what else a server says.
func (f *fixture) logins(t *testing.T, password string) string {
	t.Helper()
	var said []string
	for _, server := range f.servers {
		client := server.Client(user().Username, password)
		err := client.Ping(t.Context()).Err()
		_ = client.Close()
		switch {
		case err == nil:
			said = append(said, "yes")
		case strings.HasPrefix(err.Error(), "failed to authenticate: WRONGPASS"), strings.HasPrefix(err.Error(), "WRONGPASS"):
			said = append(said, "no")
		default:
			said = append(said, err.Error())
		}
	}
	return strings.Join(said, " ")
}

// observe waits until all nodes answer: the client of one that was down waits for a second.
func (f *fixture) observe(t *testing.T, record credential.Record) credential.State {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		state, err := f.users.Observe(t.Context(), owner(), record.Username, record.Password)
		if err == nil {
			return state
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// lets shows where passwords let the user in.
func (f *fixture) lets(t *testing.T, when string, want map[string]string) {
	t.Helper()
	for password, there := range want {
		if got := f.logins(t, password); got != there {
			t.Errorf("%s the password %s lets in: %s, want %s", when, password, got, there)
		}
	}
}

func owner() credential.Owner {
	return credential.Owner{Operator: "tenants.einmal.dev@c1", Name: "acme/web"}
}

// user is the user of the tests, with the first password.
func user() credential.Record {
	return credential.Record{Username: "t_acme_web", Password: credential.NewPassword("first"), Generation: 1}
}

func withPassword(text string) credential.Record {
	record := user()
	record.Password = credential.NewPassword(text)
	return record
}

func hashOf(password string) string { return fmt.Sprintf("#%x", sha256.Sum256([]byte(password))) }

// ours are the rules of a user as the operator makes it, but for the password.
func ours() string {
	return "on ~acme:* &acme:* " + names.CacheMark(owner().String()) + " "
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
