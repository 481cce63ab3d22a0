package servers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisAdmin is the name of the user who may do everything. The user default is off.
const RedisAdmin = "admin"

// The files in the folder of a Redis, beside those with what is chosen at the first start.
const (
	redisConfig = "redis.conf"
	redisUsers  = "users.acl"
	redisLog    = "redis.log"
)

// Redis is a real Redis or Valkey server on 127.0.0.1, which keeps no keys on disk: it is for tests and development.
type Redis struct {
	// Dir is where it keeps its files. It is made if it is not there. A server that was stopped goes on there, on the same port.
	Dir string
	// Settings are more lines of its configuration.
	Settings []string
	// Volatile leaves out the file of ACLs, so that ACL SAVE fails, and all users but the administrator are gone after a stop.
	// With the file, those that were saved are still there.
	Volatile bool

	port, secret string
	process      *process
}

// Start starts the server, and returns when it answers.
func (r *Redis) Start(ctx context.Context) error {
	if r.process != nil {
		return errors.New("redis-server runs already")
	}
	program, err := redisProgram()
	if err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	command := exec.Command(program, filepath.Join(r.Dir, redisConfig)) //nolint:noctx,gosec // Stop ends it; the developer names the program.
	EndWithParent(command, syscall.SIGKILL)
	if r.process, err = start(command, filepath.Join(r.Dir, redisLog)); err != nil {
		return err
	}
	if err := r.ready(ctx); err != nil {
		_ = r.Kill()
		return fmt.Errorf("%s did not start: %w; its log: %s", program, err, r.Log())
	}
	return nil
}

// redisProgram looks where tools/servers.sh does.
func redisProgram() (string, error) {
	if named := os.Getenv("EINMAL_REDIS_SERVER"); named != "" {
		return named, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("there is no redis-server or valkey-server on the PATH: run tools/servers.sh, or name the program in EINMAL_REDIS_SERVER")
}

// prepare writes the configuration, and the file of ACLs if there is none yet.
func (r *Redis) prepare() error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of Redis: %w", err)
	}
	var err error
	if r.port, err = kept(r.Dir, portFile, freePort); err != nil {
		return err
	}
	if r.secret, err = kept(r.Dir, secretFile, func() (string, error) { return rand.Text(), nil }); err != nil {
		return err
	}
	users := []string{"user default off", fmt.Sprintf("user %s on #%x ~* &* +@all", RedisAdmin, sha256.Sum256([]byte(r.secret)))}
	lines := append([]string{"bind 127.0.0.1", "port " + r.port, "dir " + r.Dir, `save ""`, "daemonize no"}, r.Settings...)
	if r.Volatile {
		lines = append(lines, users...)
	} else {
		saved := filepath.Join(r.Dir, redisUsers)
		lines = append(lines, "aclfile "+saved)
		if _, err := kept(r.Dir, redisUsers, func() (string, error) { return strings.Join(users, "\n") + "\n", nil }); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(r.Dir, redisConfig), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("configure Redis: %w", err)
	}
	return nil
}

// ready waits until the administrator can log in.
func (r *Redis) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := r.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.process.ended:
			return errors.New("it ended early")
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// answers reports whether the administrator can log in. It first checks that the port is open, because the client logs failed connections.
func (r *Redis) answers(ctx context.Context) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", r.Address())
	if err != nil {
		return err
	}
	admin := r.Admin() // Another one each time: one that has failed twice waits for a second.
	return errors.Join(connection.Close(), admin.Ping(ctx).Err(), admin.Close())
}

// Stop ends the server in order, and all connections with it. It can be started again.
func (r *Redis) Stop() error { return r.end(syscall.SIGTERM) }

// Kill ends the server as a crash does. It can be started again.
func (r *Redis) Kill() error { return r.end(syscall.SIGKILL) }

func (r *Redis) end(signal syscall.Signal) error {
	running := r.process
	if running == nil {
		return nil
	}
	r.process = nil
	_ = running.command.Process.Signal(syscall.SIGCONT) // One that is paused would not listen.
	return running.stop(signal)
}

// Pause keeps the server from answering, while connections stay open, until Resume.
func (r *Redis) Pause() error { return r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *Redis) Resume() error { return r.signal(syscall.SIGCONT) }

func (r *Redis) signal(signal syscall.Signal) error {
	if r.process == nil {
		return errors.New("redis-server does not run")
	}
	if err := r.process.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("pause or resume redis-server: %w", err)
	}
	return nil
}

// Address is its host and port.
func (r *Redis) Address() string { return net.JoinHostPort("127.0.0.1", r.port) }

// AdminPassword is the password of RedisAdmin.
func (r *Redis) AdminPassword() string { return r.secret }

// Admin is a client that is RedisAdmin. Close it.
func (r *Redis) Admin() *redis.Client { return r.Client(RedisAdmin, r.secret) }

// Client is a client that logs in as a user, and tries nothing twice. Close it.
func (r *Redis) Client(username, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: r.Address(), Username: username, Password: password, Protocol: 2, PoolSize: 2, MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Log is all that the server has logged so far.
func (r *Redis) Log() string {
	logged, err := os.ReadFile(filepath.Join(r.Dir, redisLog))
	if err != nil {
		return err.Error()
	}
	return string(logged)
}
