package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// systems are the servers that run.
type systems struct {
	postgres *servers.Postgres
	redis    *servers.Redis
}

// start starts the servers with the data that they had, and writes the manifests of what is needed to reach them.
func start(ctx context.Context, folder string, v *log.Logger) (*systems, error) {
	home, err := postgresHome(folder)
	if err != nil {
		return nil, err
	}
	s := &systems{
		// Without a socket, as the path of one may have 107 bytes at most.
		postgres: &servers.Postgres{Dir: home, Settings: []string{"unix_socket_directories="}},
		redis:    &servers.Redis{Dir: filepath.Join(folder, "redis"), Settings: []string{"appendonly yes"}},
	}
	for _, server := range []struct {
		name, folder string
		start        func(context.Context) error
		address      func() string
	}{
		{"PostgreSQL", home, s.postgres.Start, s.postgres.Address},
		{"Redis", s.redis.Dir, s.redis.Start, s.redis.Address},
	} {
		v.Printf("starting %s, with its data in %s …", server.name, server.folder)
		if err := free(ctx, server.folder, v); err != nil {
			return nil, errors.Join(err, s.stop())
		}
		if err := server.start(ctx); err != nil {
			return nil, errors.Join(err, s.stop())
		}
		v.Printf("%s listens on %s", server.name, server.address())
	}
	if err := s.declare(filepath.Join(folder, "manifests")); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *systems) stop() error { return errors.Join(s.redis.Stop(), s.postgres.Stop()) }

// postgresHome is where PostgreSQL keeps its data. Root cannot run it, and who runs it for root cannot enter folders of root's: then it is a
// folder elsewhere, whose name is noted.
func postgresHome(folder string) (string, error) {
	if os.Getuid() != 0 {
		return filepath.Join(folder, "postgres"), nil
	}
	note := filepath.Join(folder, "postgres-is-in")
	if noted, err := os.ReadFile(note); err == nil {
		home := strings.TrimSpace(string(noted))
		if _, err := os.Stat(home); err == nil {
			return home, nil
		}
	}
	home, err := os.MkdirTemp("/var/tmp", "einmal-tenant-")
	if err != nil {
		return "", fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	if err := os.WriteFile(note, []byte(home+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("note the folder of PostgreSQL: %w", err)
	}
	return home, nil
}

// portWait is how long the servers of a run that was killed may take to end.
const portWait = 5 * time.Second

// free waits until the port of the last run is free. If another program has it, another is chosen.
func free(ctx context.Context, folder string, v *log.Logger) error {
	note := filepath.Join(folder, "port")
	noted, err := os.ReadFile(note)
	if err != nil {
		return nil //nolint:nilerr // There was no run, and a port is chosen.
	}
	address := net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(noted)))
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, portWait, true, func(ctx context.Context) (bool, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return false, nil //nolint:nilerr // It is tried again.
		}
		return true, listener.Close()
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	v.Printf("another program listens on %s, choosing another port", address)
	return os.Remove(note)
}

// recordsNamespace is the namespace that the credentials of tenants are in.
const recordsNamespace = "tenant-credentials"

// manifests are what the operator needs. The cluster has a fixed id, so that a new one, as after --fresh, still owns what is in the servers.
const manifests = `# Written by each "make run OPERATOR=tenant", for the servers that it starts. It holds passwords of theirs.
apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: v1
kind: Secret
metadata:
  namespace: tenant-system
  name: postgres-admin
stringData:
  dsn: %[2]q
---
apiVersion: v1
kind: Secret
metadata:
  namespace: tenant-system
  name: redis-admin
type: kubernetes.io/basic-auth
stringData:
  username: %[3]q
  password: %[4]q
---
apiVersion: tenant.einmal.dev/v1
kind: TenantBackend
metadata:
  name: local
spec:
  clusterId: local
  postgres:
    dsnSecretRef:
      namespace: tenant-system
      name: postgres-admin
  cache:
    kind: Redis
    redis:
      nodes: [%[5]q]
      adminSecretRef:
        namespace: tenant-system
        name: redis-admin
  store:
    kind: Secret
    secret:
      namespace: %[1]s
`

// declare writes the manifests.
func (s *systems) declare(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder for manifests: %w", err)
	}
	text := fmt.Sprintf(manifests, recordsNamespace, s.postgres.AdminDSN(), servers.RedisAdmin, s.redis.AdminPassword(), s.redis.Address())
	if err := os.WriteFile(filepath.Join(folder, "backend.yaml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the manifests of the servers: %w", err)
	}
	return nil
}
