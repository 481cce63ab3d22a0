package redis_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// Only WRONGPASS is a wrong password, and only that of the user who is tried; all else is
// an error, which says what it is and what to do, and holds no password and no hash.
func TestWhatANodeSaysOfItselfIsNoStateOfAUser(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, f *fixture)
		want  error
	}{
		"down":                         {func(t *testing.T, f *fixture) { t.Helper(); must(t, f.servers[1].Stop()) }, redis.ErrUnreachable},
		"no answer":                    {func(t *testing.T, f *fixture) { t.Helper(); must(t, f.servers[1].Pause()) }, redis.ErrUnreachable},
		"another administrator":        {adminRule(">changed <operator"), redis.ErrDenied},
		"an administrator that is off": {adminRule("off"), redis.ErrDenied},
		"no right to look":             {adminRule("-acl|getuser"), redis.ErrDenied},
		"no right to set":              {adminRule("-acl|setuser"), redis.ErrDenied},
		"no right to transactions":     {adminRule("-multi"), redis.ErrDenied},
		"busy":                         {busy, redis.ErrNotReady},
		"no place for the file":        {func(t *testing.T, f *fixture) { t.Helper(); must(t, os.RemoveAll(f.servers[0].Dir)) }, redis.ErrUnsaved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.plant(t, f.servers[0], ours()+">other")
			f.plant(t, f.servers[1], ours()+">other")
			test.spoil(t, f)
			began := time.Now()
			state, err := f.users.Observe(t.Context(), owner(), user().Username, user().Password)
			if err == nil && state == credential.Refused { // It lets us look: then it must fail to set.
				err = f.users.Set(t.Context(), owner(), credential.Assignment{Record: user()})
			}
			if !errors.Is(err, test.want) || credential.Blocked(err) {
				t.Fatalf("%s, %v, want %v", state, err, test.want)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			tells(t, err)
		})
	}
}

// tells shows that an error tells the node and the remedy, and no secret.
func tells(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"first", hashOf("first")[1:], hashOf("other")[1:]} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds %s: %v", secret, err)
		}
	}
	if !strings.Contains(err.Error(), "redis node 127.0.0.1:") || !strings.Contains(err.Error(), "; ") {
		t.Errorf("the error tells no node or no remedy: %v", err)
	}
}

// repeating is a server that gives the same answer to all that it is sent. It returns its address.
func repeating(t *testing.T, answer string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				for asked := make([]byte, 1024); err == nil; {
					if _, err = connection.Read(asked); err == nil {
						_, err = connection.Write([]byte(answer))
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// A proxy in front of a node, or a server that is not a Redis, may repeat the login in its answer.
func TestAnAnswerThatRepeatsThePasswordIsCut(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"unknown command":    "-ERR unknown command 'HELLO', with args beginning with: '2' 'AUTH' 'operator' 'hush-hush-operator'\r\n",
		"all of it":          "-ERR invalid request: AUTH operator hush-hush-operator\r\n",
		"a part of it":       "-ERR invalid request: AUTH operator hush-hus\r\n",
		"no answer of Redis": "HTTP/1.1 400 Bad Request: hush-hush-operator\r\n",
		"a line too long":    "-" + strings.Repeat("hush-hush-operator ", 500) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := repeating(t, answer)
			nodes, err := redis.Open(redis.Config{
				Nodes: []string{address}, Username: "admin", Password: credential.NewPassword("hush-hush-operator"), Timeout: time.Second,
			})
			must(t, err)
			t.Cleanup(func() { _ = nodes.Close() })
			_, errApps := nodes.Apps(t.Context(), names.Tenant{Name: "acme"}, func(names.App) credential.Owner { return owner() })
			_, errFile := nodes.WithoutFile(t.Context())
			for _, err := range []error{nodes.Check(t.Context()), errApps, errFile} {
				if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), address) {
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
}

// adminRule changes the administrator on the second node, and ends its connections.
func adminRule(rules string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		f.as(t, f.servers[1], append([]any{"ACL", "SETUSER", "operator"}, fields(rules)...)...)
		f.as(t, f.servers[1], "CLIENT", "KILL", "USER", "operator")
	}
}

// busy lets a script run for ever on the second node.
func busy(t *testing.T, f *fixture) {
	t.Helper()
	server := f.servers[1]
	f.as(t, server, "CONFIG", "SET", "busy-reply-threshold", "1")
	looping := server.Admin()
	t.Cleanup(func() { _ = looping.Close() })
	go looping.Eval(t.Context(), "while true do end", nil)
	deadline := time.Now().Add(10 * time.Second)
	for {
		asking := server.Admin()
		err := asking.Get(t.Context(), "k").Err()
		_ = asking.Close()
		if err != nil && strings.HasPrefix(err.Error(), "BUSY") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not busy: %v", err)
		}
	}
}

// Passwords are set by hash, so they are in nothing that a server writes or shows.
func TestNoPasswordReachesAServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := f.servers[0]
	f.as(t, server, "CONFIG", "SET", "slowlog-log-slower-than", "0", "loglevel", "debug")
	watch := monitor(t, server)
	must(t, f.users.Create(t.Context(), owner(), user()))
	must(t, f.users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second"), Keep: true, Previous: user()}))
	_, err := f.users.ConvergeAccess(t.Context(), owner(), user().Username)
	must(t, err)
	must(t, f.users.Retire(t.Context(), owner(), withPassword("second"), nil))
	f.as(t, server, "ECHO", "the end")
	lines := []string{}
	for watch.Scan() && !strings.Contains(watch.Text(), "the end") {
		lines = append(lines, watch.Text())
	}
	must(t, watch.Err())
	watcher := server.Admin()
	t.Cleanup(func() { _ = watcher.Close() })
	slow, err := watcher.SlowLogGet(t.Context(), -1).Result()
	must(t, err)
	for _, entry := range slow {
		lines = append(lines, strings.Join(entry.Args, " "))
	}
	files, err := filepath.Glob(filepath.Join(server.Dir, "*"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		lines = append(lines, string(text))
	}
	all := strings.Join(lines, "\n")
	for _, password := range []string{"first", "second"} {
		if strings.Contains(all, password) {
			t.Errorf("%s is shown:\n%s", password, all)
		}
	}
	if !strings.Contains(all, hashOf("second")) || !strings.Contains(all, "GETUSER") {
		t.Error("the test saw nothing of what was done")
	}
}

// monitor reads all that a server is asked from now on, for 10 seconds at most.
func monitor(t *testing.T, server *servers.Redis) *bufio.Scanner {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Address())
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	must(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = fmt.Fprintf(connection, "AUTH %s %s\r\nMONITOR\r\n", servers.RedisAdmin, server.AdminPassword())
	must(t, err)
	lines := bufio.NewScanner(connection)
	for range 2 {
		if !lines.Scan() || lines.Text() != "+OK" {
			t.Fatalf("the server does not let us watch: %s, %v", lines.Text(), lines.Err())
		}
	}
	return lines
}

// CONTRIBUTING.md: bad input gets an error that names the field and the remedy.
func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	password := credential.NewPassword("p")
	for want, config := range map[string]redis.Config{
		"no Redis nodes":        {Username: "u", Password: password},
		"must be host:port":     {Nodes: []string{"a:1", "redis"}, Username: "u", Password: password},
		"duplicate":             {Nodes: []string{"a:1", "a:1"}, Username: "u", Password: password},
		"no username or no":     {Nodes: []string{"a:1"}, Password: password},
		"no password: set both": {Nodes: []string{"a:1"}, Username: "u"},
	} {
		if _, err := redis.Open(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", config, err, want)
		}
	}
}
