package servers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// users are the names of the users that a server knows.
func users(t *testing.T, server *servers.Redis) string {
	t.Helper()
	admin := server.Admin()
	defer func() { _ = admin.Close() }()
	names, err := admin.ACLUsers(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// A Redis for tests has an administrator, the user default is off, and it is stopped and started again for
// honest outages. Users that were saved are still there then, others are not; without a file of ACLs none is.
func TestARedisForgetsUsersThatWereNotSaved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		volatile bool
		want     string
	}{
		"with a file of ACLs": {want: "admin default saved"},
		"without one":         {volatile: true, want: "admin default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &servers.Redis{Dir: t.TempDir(), Volatile: test.volatile}
			t.Cleanup(func() { _ = server.Kill() })
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			admin := server.Admin()
			defer func() { _ = admin.Close() }()
			made := admin.ACLSetUser(t.Context(), "saved", "on", ">p").Err()
			saved := admin.Do(t.Context(), "ACL", "SAVE").Err()
			if made != nil || (saved == nil) == test.volatile {
				t.Fatalf("set: %v, save: %v", made, saved)
			}
			if err := admin.ACLSetUser(t.Context(), "unsaved", "on", ">p").Err(); err != nil {
				t.Fatal(err)
			}
			for _, end := range []func() error{server.Stop, server.Kill} {
				restartForgets(t, server, end, test.want)
			}
		})
	}
}

// restartForgets ends a server, starts it again, and looks whose users are left.
func restartForgets(t *testing.T, server *servers.Redis, end func() error, want string) {
	t.Helper()
	admin, before := server.Admin(), server.Address()
	defer func() { _ = admin.Close() }()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Ping(t.Context()).Err(); err == nil {
		t.Error("it answers after it has ended")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := users(t, server); got != want || server.Address() != before {
		t.Errorf("users %s at %s, want %s at %s", got, server.Address(), want, before)
	}
}

func TestAPausedRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := servers.StartRedis(t)
	admin, anonymous := server.Admin(), redis.NewClient(&redis.Options{Addr: server.Address()})
	t.Cleanup(func() { _, _ = admin.Close(), anonymous.Close() })
	if err := anonymous.Ping(t.Context()).Err(); err == nil {
		t.Error("who has not logged in is served")
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := admin.Ping(short).Err(); err == nil {
		t.Error("it answers while it is paused")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("one that is paused does not stop: %v", err)
	}
}

// CONTRIBUTING.md: an error tells the remedy.
func TestARedisThatCannotStartSaysWhy(t *testing.T) {
	server := &servers.Redis{Dir: t.TempDir()}
	t.Setenv("EINMAL_REDIS_SERVER", "/bin/false")
	if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "/bin/false did not start: it ended early") {
		t.Errorf("another program is said to run: %v", err)
	}
	t.Setenv("EINMAL_REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "tools/servers.sh") {
		t.Errorf("nothing is found: %v", err)
	}
}
