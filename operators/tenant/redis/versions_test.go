package redis_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// docs/operators/tenant.md, reason UnsupportedVersion: nothing is asked of a node that is too old, and the error names it, its version and the
// oldest that are supported.
func TestANodeThatIsTooOldIsTold(t *testing.T) {
	t.Parallel()
	server := servers.StartRedis(t)
	for version, old := range map[string]bool{"6.2.17": true, "none": true, "7.0.0": false, "9.1.0-rc1": false} {
		address := claims(t, server.Address(), version)
		nodes, err := redis.Open(redis.Config{
			Nodes: []string{address}, Username: servers.RedisAdmin, Password: credential.NewPassword(server.AdminPassword()),
		})
		must(t, err)
		t.Cleanup(func() { _ = nodes.Close() })
		users := redis.Users{Nodes: nodes, Access: redis.Access{Profile: redis.ReadWrite, Prefix: "acme:"}}
		_, err = users.Observe(t.Context(), owner(), user().Username, credential.Password{})
		made := users.Create(t.Context(), owner(), user())
		if !old {
			must(t, errors.Join(err, made, users.Delete(t.Context(), owner(), user().Username)))
			continue
		}
		for _, err := range []error{err, made} {
			if !errors.Is(err, redis.ErrVersion) || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), " "+version+", the oldest") {
				t.Errorf("version %s: %v", version, err)
			}
		}
		admin := server.Admin()
		if users, err := admin.ACLUsers(t.Context()).Result(); err != nil || len(users) != 2 {
			t.Errorf("version %s: there are the users %q, %v", version, users, err)
		}
		_ = admin.Close()
	}
}

// claims is the address of a way to a server, on which it says that it is of a version.
func claims(t *testing.T, server, version string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	told := regexp.MustCompile(`(\$7\r\nversion\r\n)\$\d+\r\n[^\r]*`)
	claim := []byte("${1}+" + version) // As a simple string, which has no length.
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go carry(t, client, server, func(answer []byte) []byte { return told.ReplaceAll(answer, claim) })
		}
	}()
	return listener.Addr().String()
}

// carry carries a connection, with the answers of the server changed. Those to the first commands come in one piece.
func carry(t *testing.T, client net.Conn, address string, change func([]byte) []byte) {
	t.Helper()
	server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	piece := make([]byte, 1<<16)
	for {
		n, err := server.Read(piece)
		if err == nil {
			_, err = client.Write(change(bytes.Clone(piece[:n])))
		}
		if err != nil {
			_ = client.Close()
			return
		}
	}
}
