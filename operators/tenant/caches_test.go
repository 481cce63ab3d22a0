package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// leaks revokes the leaked credential of a cache with two nodes, while one of them is down, and then while the other cannot save its users.
func (s *stage) leaks(t *testing.T) {
	second := servers.StartRedis(t)
	admin := second.Admin()
	err := errors.Join(
		admin.Do(t.Context(), "ACL", "SETUSER", servers.RedisAdmin, ">"+s.redis.AdminPassword()).Err(), admin.Do(t.Context(), "ACL", "SAVE").Err(), admin.Close())
	if err != nil {
		t.Fatal(err)
	}
	backend := s.local()
	backend.Name = "two-nodes"
	backend.Spec.Cache.Redis.Nodes = append(backend.Spec.Cache.Redis.Nodes, second.Address())
	s.make(t, backend)
	s.backend = backend.Name
	defer func() { s.backend = "local" }()
	const more = ", credentials: {probeInterval: 10s, rotation: {requestId: %s, strategy: InPlace, terminateSessions: true}}"
	s.Kubectl(t, s.manifest("leaky", fmt.Sprintf(more, "none")), "apply", "-f", "-")
	s.awaitPhase(t, "leaky", v1.Ready)

	leaked := s.stored(t, names.Tenant{Name: "leaky"}.App("web").CacheSecret())
	session := s.session(t, leaked)
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	s.Kubectl(t, s.manifest("leaky", fmt.Sprintf(more, "leak")), "apply", "-f", "-")
	fresh := s.revoked(t, leaked, session)
	s.await(t, "leaky", "without a node", func(of *v1.Tenant) bool {
		return condition(of, v1.ConditionCacheReady) == "Unknown Unreachable" && of.Status.Apps[0].Cache.Generation == 2 &&
			strings.Contains(of.Status.Apps[0].Cache.Problem, second.Address())
	})
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, second, leaked); err != nil {
		t.Fatalf("the node is back, with its old file: %v", err)
	}
	s.touch(t, "the node is back")
	s.awaitPhase(t, "leaky", v1.Ready)
	if refused, accepted := ping(t, second, leaked), ping(t, second, fresh); refused == nil || accepted != nil {
		t.Errorf("the node that was down says %v to the leaked password, and %v to the new one", refused, accepted)
	}
	s.unsaved(t, fmt.Sprintf(more, "again"), fresh)
}

// unsaved rotates while the first node cannot write its file, which a restart would undo.
func (s *stage) unsaved(t *testing.T, more string, leaked credential.Record) {
	t.Helper()
	if err := os.Rename(s.redis.Dir, s.redis.Dir+".hidden"); err != nil {
		t.Fatal(err)
	}
	session := s.session(t, leaked)
	s.Kubectl(t, s.manifest("leaky", more), "apply", "-f", "-")
	s.revoked(t, leaked, session)
	s.await(t, "leaky", "not saved", func(of *v1.Tenant) bool { return condition(of, v1.ConditionInSync) == "False UsersNotSaved" })
	s.awaitBackend(t, "two-nodes", v1.ConditionUsersSaved, "False UsersNotSaved", s.redis.Address())
	if err := os.Rename(s.redis.Dir+".hidden", s.redis.Dir); err != nil {
		t.Fatal(err)
	}
	s.awaitPhase(t, "leaky", v1.Ready)
	s.touch(t, "the node saves")
	s.awaitBackend(t, "two-nodes", v1.ConditionUsersSaved, "True Saved", "")
	if err := errors.Join(s.redis.Kill(), s.redis.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if ping(t, s.redis, leaked) == nil {
		t.Error("a restart brings the leaked password back")
	}
}

// session is an open connection to the first node.
func (s *stage) session(t *testing.T, with credential.Record) *goredis.Conn {
	t.Helper()
	client := s.redis.Client(with.Username, with.Password.Reveal())
	t.Cleanup(func() { _ = client.Close() })
	session := client.Conn()
	if err := session.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return session
}

// revoked waits until the first node refuses a leaked password and has ended its session, and returns what readers get instead.
func (s *stage) revoked(t *testing.T, leaked credential.Record, session *goredis.Conn) credential.Record {
	t.Helper()
	fresh := leaked
	einmaltest.Eventually(t, "the leaked password is revoked", func(ctx context.Context) error {
		if ping(t, s.redis, leaked) == nil {
			return errors.New("the leaked password is accepted")
		}
		if session.Ping(ctx).Err() == nil {
			return errors.New("the session with the leaked password is open")
		}
		if fresh = s.stored(t, names.Tenant{Name: "leaky"}.App("web").CacheSecret()); fresh.Password == leaked.Password {
			return errors.New("readers get the leaked password")
		}
		return ping(t, s.redis, fresh)
	})
	return fresh
}

// ping logs in to a server.
func ping(t *testing.T, server *servers.Redis, with credential.Record) error {
	t.Helper()
	client := server.Client(with.Username, with.Password.Reveal())
	defer func() { _ = client.Close() }()
	return client.Ping(t.Context()).Err()
}
